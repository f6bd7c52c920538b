// The eight moves, numbered clockwise from north as everywhere in airloc, their keys, and counts of them in words.

export const MOVES = [[-1, 0], [-1, 1], [0, 1], [1, 1], [1, 0], [1, -1], [0, -1], [-1, -1]];
export const NAMES = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];

// Return a number and a word, such as "1 move" or "3 moves".
export const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

const KEYS = {
  ArrowUp: 0, PageUp: 1, ArrowRight: 2, PageDown: 3, ArrowDown: 4, End: 5, ArrowLeft: 6, Home: 7,
  8: 0, 9: 1, 6: 2, 3: 3, 2: 4, 1: 5, 4: 6, 7: 7,
  e: 1, c: 3, z: 5, q: 7, KeyE: 1, KeyC: 3, KeyZ: 5, KeyQ: 7,
};

// Return the move of a key, or undefined. The number pad sends digits or, without Num Lock, the keys printed on it. The
// letters of the diagonals count by name and by place, because keyboards differ in where Q and Z are.
export function moveOfKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return undefined;
  return KEYS[event.key] ?? KEYS[event.code];
}

export function target([row, col], move) {
  return [row + MOVES[move][0], col + MOVES[move][1]];
}

export function moveBetween([row, col], [toRow, toCol]) {
  const found = MOVES.findIndex(([down, right]) => row + down === toRow && col + right === toCol);
  return found < 0 ? undefined : found;
}

// Return a shortest path by king's moves: first diagonal, then straight.
export function shortestPath([row, col], [toRow, toCol]) {
  const path = [[row, col]];
  while (row !== toRow || col !== toCol) {
    row += Math.sign(toRow - row);
    col += Math.sign(toCol - col);
    path.push([row, col]);
  }
  return path;
}
