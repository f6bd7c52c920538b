// The board: cells are dark until visited; the current cell is marked, and its neighbours can be clicked.

import { NAMES, moveBetween } from "./moves.js";
import { paint } from "./server.js";

export class Board {
  constructor(root, onMove) {
    this.root = root;
    this.onMove = onMove;
    root.addEventListener("click", (event) => {
      const cell = event.target.closest(".cell");
      if (cell?.classList.contains("near")) onMove(Number(cell.dataset.move));
    });
  }

  // Show the state of a game.
  begin(state) {
    this.rows = state.rows;
    this.cols = state.cols;
    this.side = state.cell;
    this.visits = new Map();
    this.cells = [];
    this.root.replaceChildren();
    this.root.style.gridTemplateColumns = `repeat(${state.cols}, 1fr)`;
    this.root.style.setProperty("--gap", Math.max(state.rows, state.cols) > 8 ? "2px" : "");
    this.root.parentElement.style.setProperty("--ratio", state.cols / state.rows);
    this.root.setAttribute("aria-label", `Search area, ${state.rows} rows and ${state.cols} columns`);
    for (let number = 0; number < state.rows * state.cols; number++) {
      const cell = document.createElement("button");
      cell.type = "button";
      cell.className = "cell";
      this.cells.push(cell);
      this.root.append(cell);
    }
    state.path.forEach((position, turn) => this.visit(position, turn, state.patches[turn], turn === state.turn));
    this.mark(state.position, state.ending === null);
  }

  contains([row, col]) {
    return row >= 0 && col >= 0 && row < this.rows && col < this.cols;
  }

  cellAt([row, col]) {
    return this.contains([row, col]) ? this.cells[row * this.cols + col] : undefined;
  }

  // Show the patch of a cell and the number of the visit.
  visit(position, turn, patch, fresh = true) {
    const cell = this.cellAt(position);
    if (!cell) return;
    const key = position.join();
    if (!this.visits.has(key)) {
      this.visits.set(key, []);
      const canvas = document.createElement("canvas");
      const numbers = document.createElement("span");
      numbers.className = "visits";
      paint(canvas, patch, this.side);
      cell.append(canvas, numbers);
      cell.classList.add("visited");
      cell.classList.toggle("fresh", fresh);
    }
    const number = document.createElement("b");
    number.textContent = turn === 0 ? "S" : String(turn);
    number.classList.toggle("start", turn === 0);
    cell.querySelector(".visits").append(number);
    this.visits.get(key).push(turn);
  }

  // Mark the current cell and the cells that the next move can reach.
  mark(position, inProgress) {
    const hadFocus = this.root.contains(document.activeElement);
    this.cells.forEach((cell, number) => {
      const at = [Math.floor(number / this.cols), number % this.cols];
      const move = moveBetween(position, at);
      const here = at[0] === position[0] && at[1] === position[1];
      const near = inProgress && move !== undefined;
      cell.classList.toggle("here", here);
      cell.classList.toggle("near", near);
      cell.dataset.move = near ? move : "";
      cell.tabIndex = near || here ? 0 : -1;
      cell.setAttribute("aria-disabled", String(!near));
      cell.setAttribute("aria-label", this.label(at, here, near ? NAMES[move] : ""));
    });
    if (hadFocus) this.cellAt(position)?.focus({ preventScroll: true });
  }

  label([row, col], here, direction) {
    const turns = this.visits.get(`${row},${col}`);
    const visits = turns ? `visited ${turns.map((turn) => (turn === 0 ? "at the start" : `in move ${turn}`)).join(", ")}` : "not visited";
    const action = here ? ", you are here" : direction ? `, go ${direction}` : "";
    return `Row ${row + 1}, column ${col + 1}, ${visits}${action}`;
  }
}
