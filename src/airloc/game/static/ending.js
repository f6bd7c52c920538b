// The end of a game: the whole area with the player's path and a shortest path, and the agents' paths when they arrive.

import { describe } from "./agents.js";
import { plural, shortestPath } from "./moves.js";
import { STYLES, drawEnds, drawLine, drawNumbers, fitMap, make, makeMap } from "./overlay.js";

export function headline(reveal) {
  if (reveal.ending === "found") return `You found it in ${plural(reveal.path.length - 1, "move")}`;
  return `${reveal.ending === "moves" ? "No moves left" : "Time's up"}: you did not find it`;
}

export const summary = (reveal) => `The shortest route takes ${plural(reveal.distance, "move")}.`;

// Return what the agents did, or that they are not ready.
export function agentsSummary(agents) {
  if (agents === null) return "The agents are searching for the same place \u2026";
  return agents.map(({ agent, found, path }) =>
    `${describe(agent).name} ${found ? `found it in ${plural(path.length - 1, "move")}` : "did not find it"}.`).join(" ");
}

export class Ending {
  constructor(map, list) {
    this.map = map;
    this.list = list;
  }

  // Draw the map and the list of paths; each path can be hidden.
  show(reveal, size) {
    this.svg = makeMap(reveal.image, size.rows, size.cols, [reveal.path], `The whole area. ${headline(reveal)}. ${summary(reveal)}`);
    this.paths = [reveal.path];
    this.list.replaceChildren(this.list.querySelector("legend"));
    this.layer = make("g");  // agents' paths lie below the player's
    this.svg.append(this.layer);
    const shortest = drawLine(this.svg, shortestPath(reveal.start, reveal.goal), STYLES.shortest, -4);
    const own = drawLine(this.svg, reveal.path, STYLES.you);
    drawNumbers(this.svg, reveal.path, STYLES.you.colour, own);
    drawEnds(this.svg, reveal.start, reveal.goal, reveal.ending === "found");
    this.map.replaceChildren(this.svg);
    this.map.parentElement.style.setProperty("--ratio", size.cols / size.rows);
    this.addRow("Your path", "", STYLES.you, own);
    this.addRow("Shortest route", "", STYLES.shortest, shortest);
  }

  // Add the agents' paths.
  addAgents(agents) {
    agents.forEach(({ agent, path }, number) => {
      const style = STYLES.agents[number % STYLES.agents.length];
      const group = drawLine(this.svg, path, style, 4 * (number + 1));
      this.layer.append(group);
      this.paths.push(path);
      const { name, line } = describe(agent);
      this.addRow(name, line, style, group);
    });
    fitMap(this.svg, this.paths);
  }

  addRow(name, line, style, group) {
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
    const text = document.createElement("span");
    const about = document.createElement("small");
    about.textContent = line;
    text.append(name, about);
    row.append(box, sample, text);
    this.list.append(row);
  }
}
