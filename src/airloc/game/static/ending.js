// The end of a game: the whole area with the player's path, a shortest path and the agents' paths, and the result.

import { plural, shortestPath } from "./moves.js";
import { STYLES, drawEnds, drawLine, drawNumbers, make, makeMap } from "./overlay.js";

export function headline(reveal) {
  const moves = reveal.path.length - 1;
  if (reveal.ending === "found") return `Found in ${plural(moves, "move")}`;
  return reveal.ending === "time" ? "Out of time" : "Out of moves";
}

export function summary(reveal) {
  const shortest = `The shortest path has ${plural(reveal.distance, "move")}.`;
  const others = reveal.agents.map(({ agent, found, path }) =>
    found ? `${agent} found it in ${plural(path.length - 1, "move")}.` : `${agent} did not find it.`);
  return [shortest, ...others].join(" ");
}

// Draw the map and the list of paths; each path can be hidden.
export function showEnding(reveal, image, size, map, list) {
  const shortest = shortestPath(reveal.start, reveal.goal);
  const routes = [
    ...reveal.agents.map(({ agent, path }, number) =>
      ({ name: agent, path, style: STYLES.agents[number % STYLES.agents.length], shift: 4 * (number + 1) })),
    { name: "shortest", path: shortest, style: STYLES.shortest, shift: -4 },
    { name: "you", path: reveal.path, style: STYLES.you, shift: 0 },
  ];
  const label = `The whole area. ${headline(reveal)}. ${summary(reveal)}`;
  const svg = makeMap(image, size.rows, size.cols, routes.map(({ path }) => path), label);
  const groups = routes.map(({ path, style, shift }) => drawLine(svg, path, style, shift));
  drawNumbers(svg, reveal.path, STYLES.you.colour, groups.at(-1));
  drawEnds(svg, reveal.start, reveal.goal, reveal.ending === "found");
  map.replaceChildren(svg);
  const rows = routes.map(({ name, style }, number) => legendRow(name, style, groups[number]));
  const [shortestRow, ownRow] = rows.slice(-2);
  list.replaceChildren(list.querySelector("legend"), ownRow, shortestRow, ...rows.slice(0, -2));
}

function legendRow(name, style, group) {
  const row = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => { group.style.display = box.checked ? "" : "none"; });
  const sample = make("svg", { width: 44, height: 16, viewBox: "0 0 44 16", "aria-hidden": "true" });
  sample.append(make("line", {
    x1: 5, y1: 8, x2: 39, y2: 8, stroke: style.colour, "stroke-width": style.width, "stroke-dasharray": style.dash,
    "stroke-linecap": "round",
  }));
  row.append(box, sample, name === "you" ? "Your path" : name === "shortest" ? "Shortest path" : name);
  return row;
}
