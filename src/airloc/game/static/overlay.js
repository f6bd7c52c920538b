// Draws paths on an image of the area as SVG: numbered circles in the order of the visits, S for start and G for goal.

const SVG = "http://www.w3.org/2000/svg";
const PITCH = 52;
const CELL = 48;
const RIM = 4;  // around the map, so that the frame of a goal at the border is not cut off

// Return the length of a side of the area in pixels.
const sideLength = (cells) => (cells - 1) * PITCH + CELL;

export function make(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

// Line styles of the paths. Paths differ in dashes as well as in colour.
export const STYLES = {
  you: { colour: "#c83a12", dash: "", width: 4 },
  shortest: { colour: "#ffc828", dash: "1 7", width: 5 },
  agents: [
    { colour: "#56b4e9", dash: "10 5", width: 3.5 },
    { colour: "#5ee0b8", dash: "5 4", width: 3.5 },
    { colour: "#e79bd0", dash: "12 4 3 4", width: 3.5 },
    { colour: "#ffffff", dash: "3 4", width: 3.5 },
  ],
};

// Make a map of the area.
export function makeMap(image, rows, cols, paths, label) {
  const svg = make("svg", { role: "img", "aria-label": label });
  svg.append(make("image", { href: image, width: sideLength(cols), height: sideLength(rows), preserveAspectRatio: "none" }));
  svg.dataset.rows = rows;
  svg.dataset.cols = cols;
  fitMap(svg, paths);
  return svg;
}

// Show a margin of dark cells on the sides where a path leaves the area.
export function fitMap(svg, paths) {
  const [rows, cols, cells] = [Number(svg.dataset.rows), Number(svg.dataset.cols), paths.flat()];
  const margin = (outside) => RIM + (cells.some(outside) ? PITCH : 0);
  const [left, top] = [margin(([, col]) => col < 0), margin(([row]) => row < 0)];
  const [right, bottom] = [margin(([, col]) => col >= cols), margin(([row]) => row >= rows)];
  const [width, height] = [left + sideLength(cols) + right, top + sideLength(rows) + bottom];
  svg.setAttribute("viewBox", `${-left} ${-top} ${width} ${height}`);
}

// Show one cell of an area as a picture of its own.
export function makePicture(image, rows, cols, [row, col], label) {
  const svg = make("svg", { viewBox: `${col * PITCH} ${row * PITCH} ${CELL} ${CELL}`, role: "img", "aria-label": label });
  svg.append(make("image", { href: image, width: sideLength(cols), height: sideLength(rows), preserveAspectRatio: "none" }));
  return svg;
}

// Return the centre of a cell; a cell far outside is drawn in the margin.
export function centre(svg, [row, col]) {
  const clamp = (value, count) => Math.min(Math.max(value, -1), Number(count));
  const at = (value) => value * PITCH + CELL / 2;
  return [at(clamp(col, svg.dataset.cols)), at(clamp(row, svg.dataset.rows))];
}

export function box([row, col], attributes) {
  return make("rect", { x: col * PITCH, y: row * PITCH, width: CELL, height: CELL, ...attributes });
}

// Darken the area except the cells of a path.
export function darken(svg, path, rows, cols, opacity) {
  const hole = ([row, col]) => `M${col * PITCH} ${row * PITCH}h${CELL}v${CELL}h${-CELL}z`;
  const inside = path.filter(([row, col]) => row >= 0 && col >= 0 && row < rows && col < cols).map((cell) => cell.join());
  const holes = [...new Set(inside)].map((key) => hole(key.split(",").map(Number)));
  const [width, height] = [sideLength(cols), sideLength(rows)];
  const d = `M0 0h${width}v${height}h${-width}z${holes.join("")}`;
  svg.append(make("path", { d, fill: "#0b0d10", "fill-opacity": opacity, "fill-rule": "evenodd" }));
}

// Draw a path as a line with a dark outline, shifted a little so that paths over the same cells stay distinguishable.
export function drawLine(svg, path, style, shift = 0) {
  const group = make("g", { transform: `translate(${shift} ${shift})` });
  const points = path.map((cell) => centre(svg, cell).join(",")).join(" ");
  const line = { points, fill: "none", "stroke-linejoin": "round", "stroke-linecap": "round" };
  group.append(make("polyline", { ...line, stroke: "#101418", "stroke-opacity": 0.75, "stroke-width": style.width + 3 }));
  group.append(make("polyline", { ...line, stroke: style.colour, "stroke-width": style.width, "stroke-dasharray": style.dash }));
  svg.append(group);
  return group;
}

// Draw numbered circles on a path; a cell that was visited several times gets several circles.
export function drawNumbers(svg, path, colour, group = svg) {
  const visits = new Map();
  path.forEach((cell, turn) => {
    const key = cell.join();
    if (turn > 0) visits.set(key, [...(visits.get(key) ?? []), turn]);
  });
  for (const [key, turns] of visits) {
    const [x, y] = centre(svg, key.split(",").map(Number));
    const columns = Math.min(3, turns.length);
    const lines = Math.ceil(turns.length / columns);
    turns.forEach((turn, place) => {
      const [column, line] = [place % columns, Math.floor(place / columns)];
      disc(group, x + 15 * (column - (columns - 1) / 2), y + 15 * line - 3 * (lines - 1), colour, String(turn), "#ffffff");
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

// Mark the start with S and the goal with G.
export function drawEnds(svg, start, goal, found) {
  const [row, col] = goal;
  svg.append(box(goal, { fill: "none", stroke: "#14171c", "stroke-width": 6, rx: 2 }));
  svg.append(box(goal, {
    fill: "none", stroke: STYLES.shortest.colour, "stroke-width": 3.5, rx: 2, "stroke-dasharray": found ? "" : "7 4",
  }));
  disc(svg, col * PITCH + 38, row * PITCH + 10, STYLES.shortest.colour, "G", "#14171c");
  const [x, y] = [start[1] * PITCH + 10, start[0] * PITCH + 10];
  disc(svg, x, y, "#005aa0", "S", "#ffffff");
}
