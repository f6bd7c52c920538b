// One agent's search on the screen: what it has seen, what it believes, how likely it takes each move for.

import { NAMES, target } from "./moves.js";
import { LOOKS, box, drawEnds, drawLine, drawNumbers, make, makeMap, middle } from "./overlay.js";

// The outline of the area with a hole for every visited cell.
function everythingBut(path, rows, cols) {
  const hole = ([row, col]) => `M${col * 52} ${row * 52}h48v48h-48z`;
  const inside = path.filter(([row, col]) => row >= 0 && col >= 0 && row < rows && col < cols).map((cell) => cell.join());
  const holes = [...new Set(inside)].map((key) => hole(key.split(",").map(Number)));
  return `M0 0h${cols * 52 - 4}v${rows * 52 - 4}h${4 - cols * 52}z${holes.join("")}`;
}

const percent = (share) => `${share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`;

export class Panel {
  constructor(track, search, heat) {
    this.track = track;
    this.search = search;
    this.heat = heat;
    this.root = document.createElement("section");
    this.root.className = "panel";
    this.root.dataset.agent = track.agent;
    const title = document.createElement("h2");
    this.ending = document.createElement("span");
    title.append(track.agent, this.ending);
    this.map = document.createElement("div");
    this.text = document.createElement("p");
    this.root.append(title, this.map, this.text);
    this.root.setAttribute("aria-label", track.agent);
  }

  // Show the search after some moves; one that has ended stays as it is.
  show(wanted) {
    const { track, search } = this;
    const moves = track.path.length - 1;
    const step = Math.min(wanted, moves);
    const path = track.path.slice(0, step + 1);
    const look = track.looks[Math.min(step, moves - 1)];
    const svg = makeMap(search.picture, search.rows, search.cols, [track.path], this.describe(step, look));
    this.shade(svg, path, look?.belief);
    if (look?.chances && step < moves) this.arrows(svg, path.at(-1), look.chances);
    const line = drawLine(svg, path, LOOKS.you);
    drawNumbers(svg, path, LOOKS.you.colour, line);
    drawEnds(svg, search.start, search.goal, track.found && step === moves);
    this.map.replaceChildren(svg);
    const ended = step === moves;
    this.ending.textContent = !ended ? `${step} of at most ${search.budget}` : track.found ? `found in ${moves}` : `not found in ${moves}`;
    this.text.textContent = this.describe(step, look);
  }

  // What was not visited is dark; where there is a belief, its cells have the colour of their probability.
  shade(svg, path, belief) {
    const { rows, cols } = this.search;
    svg.append(make("path", { d: everythingBut(path, rows, cols), fill: "#0b0d10", "fill-opacity": 0.7, "fill-rule": "evenodd" }));
    if (!belief) return;
    const seen = new Set(path.map((cell) => cell.join()));
    const top = Math.max(4 / (rows * cols), ...belief);
    belief.forEach((chance, number) => {
      const cell = [Math.floor(number / cols), number % cols];
      if (seen.has(cell.join())) return;
      const fill = this.heat[Math.round((this.heat.length - 1) * Math.min(1, chance / top))];
      svg.append(box(cell, { fill, "fill-opacity": 0.75, class: "belief" }));
      this.number(svg, cell, chance, chance / top > 0.6);
    });
  }

  number(svg, cell, chance, bright) {
    const [x, y] = middle(svg, cell);
    svg.append(make("text", {
      x, y: y + 18, "text-anchor": "middle", "font-size": 9.5, fill: bright ? "#14171c" : "#ffffff",
      "font-family": "system-ui, sans-serif",
    }, percent(chance)));
  }

  // The eight moves as arrows, the wider the likelier.
  arrows(svg, position, chances) {
    chances.forEach((chance, move) => {
      if (chance < 0.005) return;
      const [x, y] = middle(svg, position);
      const [toX, toY] = middle(svg, target(position, move));
      const length = 0.42 + 0.38 * chance;
      const [endX, endY] = [x + length * (toX - x), y + length * (toY - y)];
      const arrow = make("g", { class: "chance" });
      arrow.append(make("line", { x1: x, y1: y, x2: endX, y2: endY, stroke: "#101418", "stroke-width": 3.5 + 9 * chance, "stroke-linecap": "round" }));
      arrow.append(make("line", { x1: x, y1: y, x2: endX, y2: endY, stroke: "#7fd0ff", "stroke-width": 1.5 + 9 * chance, "stroke-linecap": "round" }));
      if (chance >= 0.1) {
        arrow.append(make("text", {
          x: x + 0.95 * (toX - x), y: y + 0.95 * (toY - y) + 4, "text-anchor": "middle", "font-size": 10.5, "font-weight": 700, fill: "#ffffff",
          stroke: "#101418", "stroke-width": 3, "paint-order": "stroke", "font-family": "system-ui, sans-serif",
        }, percent(chance)));
      }
      svg.append(arrow);
    });
  }

  describe(step, look) {
    const { track, search } = this;
    const [row, col] = track.path[step];
    if (step === track.path.length - 1) {
      return track.found ? "Here it is." : `Out of moves at row ${row + 1}, column ${col + 1}.`;
    }
    const parts = [`At row ${row + 1}, column ${col + 1}.`];
    if (look?.belief) {
      const best = look.belief.indexOf(Math.max(...look.belief));
      const [bestRow, bestCol] = [Math.floor(best / search.cols), best % search.cols];
      parts.push(`Believes in row ${bestRow + 1}, column ${bestCol + 1} with ${percent(look.belief[best])}.`);
    }
    if (look?.chances) {
      const best = look.chances.indexOf(Math.max(...look.chances));
      parts.push(`Most likely move: ${NAMES[best]}, ${percent(look.chances[best])}.`);
    }
    return parts.join(" ");
  }
}
