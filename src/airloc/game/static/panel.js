// Shows one agent's search: the visited cells, the belief, and the probability of each move.

import { describe } from "./agents.js";
import { NAMES, plural, target } from "./moves.js";
import { STYLES, box, centre, darken, drawEnds, drawLine, drawNumbers, make, makeMap } from "./overlay.js";

const percent = (value) => `${value < 0.0995 ? (100 * value).toFixed(1) : Math.round(100 * value)} %`;

export class Panel {
  constructor(record, search, heat) {
    this.record = record;
    this.search = search;
    this.heat = heat;
    this.root = document.createElement("section");
    this.root.className = "panel";
    this.root.dataset.agent = record.agent;
    const title = document.createElement("h2");
    this.ending = document.createElement("span");
    const { name, line } = describe(record.agent);
    title.append(name, this.ending);
    const about = document.createElement("p");
    about.className = "about";
    about.textContent = line;
    this.map = document.createElement("div");
    this.text = document.createElement("p");
    this.root.append(title, about, this.map, this.text);
    this.root.setAttribute("aria-label", name);
  }

  // Show the search after some moves; a search that has ended does not change.
  show(wanted) {
    const { record, search } = this;
    const moves = record.path.length - 1;
    const step = Math.min(wanted, moves);
    const path = record.path.slice(0, step + 1);
    const state = record.steps[Math.min(step, moves - 1)];
    const svg = makeMap(search.image, search.rows, search.cols, [record.path], this.summary(step, state));
    this.shade(svg, path, state?.belief);
    if (state?.move_probabilities && step < moves) this.arrows(svg, path.at(-1), state.move_probabilities);
    const line = drawLine(svg, path, STYLES.you);
    drawNumbers(svg, path, STYLES.you.colour, line);
    drawEnds(svg, search.start, search.goal, record.found && step === moves);
    this.map.replaceChildren(svg);
    const ended = step === moves;
    this.ending.textContent = !ended ? `move ${step} of ${search.budget}` : record.found ? `found in ${plural(moves, "move")}` : "not found";
    this.text.textContent = this.summary(step, state);
  }

  // Darken the cells that were not visited; colour them by the belief if the agent has one.
  shade(svg, path, belief) {
    const { rows, cols } = this.search;
    darken(svg, path, rows, cols, 0.7);
    if (!belief) return;
    const visited = new Set(path.map((cell) => cell.join()));
    const top = Math.max(4 / (rows * cols), ...belief);
    belief.forEach((probability, number) => {
      const cell = [Math.floor(number / cols), number % cols];
      if (visited.has(cell.join())) return;
      const fill = this.heat[Math.round((this.heat.length - 1) * Math.min(1, probability / top))];
      svg.append(box(cell, { fill, "fill-opacity": 0.75, class: "belief" }));
      this.number(svg, cell, probability, probability / top > 0.6);
    });
  }

  number(svg, cell, probability, bright) {
    const [x, y] = centre(svg, cell);
    svg.append(make("text", {
      x, y: y + 18, "text-anchor": "middle", "font-size": 9.5, fill: bright ? "#14171c" : "#ffffff",
      "font-family": "system-ui, sans-serif",
    }, percent(probability)));
  }

  // Draw the eight moves as arrows; a wider arrow is a more probable move.
  arrows(svg, position, probabilities) {
    probabilities.forEach((probability, move) => {
      if (probability < 0.005) return;
      const [x, y] = centre(svg, position);
      const [toX, toY] = centre(svg, target(position, move));
      const length = 0.42 + 0.38 * probability;
      const [endX, endY] = [x + length * (toX - x), y + length * (toY - y)];
      const arrow = make("g", { class: "move" });
      arrow.append(make("line", { x1: x, y1: y, x2: endX, y2: endY, stroke: "#101418", "stroke-width": 3.5 + 9 * probability, "stroke-linecap": "round" }));
      arrow.append(make("line", { x1: x, y1: y, x2: endX, y2: endY, stroke: "#7fd0ff", "stroke-width": 1.5 + 9 * probability, "stroke-linecap": "round" }));
      if (probability >= 0.1) {
        arrow.append(make("text", {
          x: x + 0.95 * (toX - x), y: y + 0.95 * (toY - y) + 4, "text-anchor": "middle", "font-size": 10.5, "font-weight": 700, fill: "#ffffff",
          stroke: "#101418", "stroke-width": 3, "paint-order": "stroke", "font-family": "system-ui, sans-serif",
        }, percent(probability)));
      }
      svg.append(arrow);
    });
  }

  summary(step, state) {
    const { record, search } = this;
    const [row, col] = record.path[step];
    if (step === record.path.length - 1) {
      return record.found ? "Goal found." : `Out of moves at row ${row + 1}, column ${col + 1}.`;
    }
    const parts = [`At row ${row + 1}, column ${col + 1}.`];
    if (state?.belief) {
      const best = state.belief.indexOf(Math.max(...state.belief));
      const [bestRow, bestCol] = [Math.floor(best / search.cols), best % search.cols];
      parts.push(`Most likely: row ${bestRow + 1}, column ${bestCol + 1} (${percent(state.belief[best])}).`);
    }
    if (state?.move_probabilities) {
      const best = state.move_probabilities.indexOf(Math.max(...state.move_probabilities));
      parts.push(`Most likely move: ${NAMES[best]} (${percent(state.move_probabilities[best])}).`);
    }
    return parts.join(" ");
  }
}
