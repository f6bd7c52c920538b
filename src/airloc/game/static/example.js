// The example on the welcome page: the place to find, the start of a search, and its end.

import { STYLES, box, darken, drawEnds, drawLine, drawNumbers, makeMap, makePicture } from "./overlay.js";
import { moveBetween } from "./moves.js";

const IMAGE = "/static/example.jpg";
const SIDE = 5;
const PATH = [[3, 0], [3, 1], [2, 2], [2, 3]];

export function showExample(goal, start, end) {
  goal.replaceChildren(makePicture(IMAGE, SIDE, SIDE, PATH.at(-1), "A beach between houses and the sea"));
  const first = board(PATH.slice(0, 1), "One square of the area is visible, with houses. The others are dark.");
  first.append(box(PATH[0], { fill: "none", stroke: "#ff8a4a", "stroke-width": 4, rx: 2 }));
  start.replaceChildren(first);
  const last = board(PATH, "A path of three moves leads to the beach.");
  drawNumbers(last, PATH, STYLES.you.colour, drawLine(last, PATH, STYLES.you));
  drawEnds(last, PATH[0], PATH.at(-1), true);
  end.replaceChildren(last);
}

// Draw the area with all cells dark but those of the path; cells next to the start are brighter.
function board(path, label) {
  const svg = makeMap(IMAGE, SIDE, SIDE, [], label);
  darken(svg, path, SIDE, SIDE, 1);
  const visited = new Set(path.map((cell) => cell.join()));
  for (let number = 0; number < SIDE * SIDE; number++) {
    const cell = [Math.floor(number / SIDE), number % SIDE];
    if (visited.has(cell.join())) continue;
    const near = path.length === 1 && moveBetween(path[0], cell) !== undefined;
    svg.append(box(cell, { fill: near ? "#333d48" : "#232931", stroke: near ? "#8b98a6" : "#232931", "stroke-width": 2, rx: 2 }));
  }
  return svg;
}
