// Paths over a picture of the area, as SVG: numbered circles in the order of the visits, S and G.

const SVG = "http://www.w3.org/2000/svg";
const PITCH = 52;
const CELL = 48;

export function make(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

// How the paths look; colour is never the only difference.
export const LOOKS = {
  you: { colour: "#c83a12", dash: "", width: 4 },
  shortest: { colour: "#ffc828", dash: "1 7", width: 5 },
  agents: [
    { colour: "#56b4e9", dash: "10 5", width: 3.5 },
    { colour: "#5ee0b8", dash: "5 4", width: 3.5 },
    { colour: "#e79bd0", dash: "12 4 3 4", width: 3.5 },
    { colour: "#ffffff", dash: "3 4", width: 3.5 },
  ],
};

// An empty map of the area, with a rim of dark cells on the sides where paths leave it.
export function makeMap(picture, rows, cols, paths, label) {
  const cells = paths.flat();
  const rim = (outside) => (cells.some(outside) ? PITCH : 0);
  const [left, top] = [rim(([, col]) => col < 0), rim(([row]) => row < 0)];
  const [right, bottom] = [rim(([, col]) => col >= cols), rim(([row]) => row >= rows)];
  const [width, height] = [cols * PITCH - 4, rows * PITCH - 4];
  const svg = make("svg", {
    viewBox: `${-left} ${-top} ${left + width + right} ${top + height + bottom}`, role: "img", "aria-label": label,
  });
  svg.append(make("image", { href: picture, x: 0, y: 0, width, height, preserveAspectRatio: "none" }));
  svg.dataset.rows = rows;
  svg.dataset.cols = cols;
  return svg;
}

// The middle of a cell; cells far outside are shown on the rim.
export function middle(svg, [row, col]) {
  const clamp = (value, count) => Math.min(Math.max(value, -1), Number(count));
  const at = (value) => value * PITCH + CELL / 2;
  return [at(clamp(col, svg.dataset.cols)), at(clamp(row, svg.dataset.rows))];
}

export function box([row, col], attributes) {
  return make("rect", { x: col * PITCH, y: row * PITCH, width: CELL, height: CELL, ...attributes });
}

// A path as a line on a dark casing, shifted a little so that paths over the same cells can be told apart.
export function drawLine(svg, path, look, shift = 0) {
  const group = make("g", { transform: `translate(${shift} ${shift})` });
  const points = path.map((cell) => middle(svg, cell).join(",")).join(" ");
  const line = { points, fill: "none", "stroke-linejoin": "round", "stroke-linecap": "round" };
  group.append(make("polyline", { ...line, stroke: "#101418", "stroke-opacity": 0.75, "stroke-width": look.width + 3 }));
  group.append(make("polyline", { ...line, stroke: look.colour, "stroke-width": look.width, "stroke-dasharray": look.dash }));
  svg.append(group);
  return group;
}

// Numbered circles on a path; a cell that is visited again gets its circles side by side.
export function drawNumbers(svg, path, colour, group = svg) {
  const visits = new Map();
  path.forEach((cell, turn) => {
    const key = cell.join();
    if (turn > 0) visits.set(key, [...(visits.get(key) ?? []), turn]);
  });
  for (const [key, turns] of visits) {
    const [x, y] = middle(svg, key.split(",").map(Number));
    turns.forEach((turn, place) => {
      const at = x + (place - (turns.length - 1) / 2) * Math.min(17, 44 / turns.length);
      disc(group, at, y, colour, String(turn), "#ffffff");
    });
  }
}

function disc(group, x, y, colour, text, ink) {
  group.append(make("circle", { cx: x, cy: y, r: 9, fill: colour, stroke: ink, "stroke-width": 1.2 }));
  group.append(make("text", {
    x, y: y + 4, "text-anchor": "middle", "font-size": 11, "font-weight": 700, fill: ink,
    "font-family": "system-ui, sans-serif",
  }, text));
}

// The two letters: S where the search began, G where the goal is.
export function drawEnds(svg, start, goal, found) {
  const [row, col] = goal;
  svg.append(box(goal, { fill: "none", stroke: "#14171c", "stroke-width": 6, rx: 2 }));
  svg.append(box(goal, {
    fill: "none", stroke: LOOKS.shortest.colour, "stroke-width": 3.5, rx: 2, "stroke-dasharray": found ? "" : "7 4",
  }));
  disc(svg, col * PITCH + 38, row * PITCH + 10, LOOKS.shortest.colour, "G", "#14171c");
  const [x, y] = [start[1] * PITCH + 10, start[0] * PITCH + 10];
  disc(svg, x, y, "#005aa0", "S", "#ffffff");
}
