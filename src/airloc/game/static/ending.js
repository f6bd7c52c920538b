// The end of a game: the whole area with the player's path, the shortest path and each agent's path, and the score.

import { shortestPath } from "./moves.js";
import { LOOKS, drawEnds, drawLine, drawNumbers, make, makeMap } from "./overlay.js";

const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

export function headline(reveal) {
  const moves = reveal.path.length - 1;
  if (reveal.ending === "found") return `Found in ${count(moves, "move")}`;
  return reveal.ending === "time" ? "Time is over" : "Out of moves";
}

export function summary(reveal) {
  const way = `The shortest way has ${count(reveal.distance, "move")}.`;
  const others = reveal.agents.map(({ agent, found, path }) =>
    found ? `${agent} finds it in ${count(path.length - 1, "move")}.` : `${agent} does not find it.`);
  return [way, ...others].join(" ");
}

// Draw the map and the list of paths, each of which can be hidden.
export function showEnding(reveal, picture, size, map, list) {
  const shortest = shortestPath(reveal.start, reveal.goal);
  const routes = [
    ...reveal.agents.map(({ agent, path }, number) =>
      ({ name: agent, path, look: LOOKS.agents[number % LOOKS.agents.length], shift: 4 * (number + 1) })),
    { name: "shortest", path: shortest, look: LOOKS.shortest, shift: -4 },
    { name: "you", path: reveal.path, look: LOOKS.you, shift: 0 },
  ];
  const label = `The whole area. ${headline(reveal)}. ${summary(reveal)}`;
  const svg = makeMap(picture, size.rows, size.cols, routes.map(({ path }) => path), label);
  const groups = routes.map(({ path, look, shift }) => drawLine(svg, path, look, shift));
  drawNumbers(svg, reveal.path, LOOKS.you.colour, groups.at(-1));
  drawEnds(svg, reveal.start, reveal.goal, reveal.ending === "found");
  map.replaceChildren(svg);
  const rows = routes.map(({ name, look }, number) => legendRow(name, look, groups[number]));
  const [shortestRow, ownRow] = rows.slice(-2);
  list.replaceChildren(list.querySelector("legend"), ownRow, shortestRow, ...rows.slice(0, -2));
}

function legendRow(name, look, group) {
  const row = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => { group.style.display = box.checked ? "" : "none"; });
  const sample = make("svg", { width: 44, height: 16, viewBox: "0 0 44 16", "aria-hidden": "true" });
  sample.append(make("line", {
    x1: 5, y1: 8, x2: 39, y2: 8, stroke: look.colour, "stroke-width": look.width, "stroke-dasharray": look.dash,
    "stroke-linecap": "round",
  }));
  row.append(box, sample, name === "you" ? "Your path" : name === "shortest" ? "Shortest path" : name);
  return row;
}
