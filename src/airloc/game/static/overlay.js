// Draws paths on an image of the area as SVG: numbered circles in the order of the visits, S for start and G for goal.

const SVG = "http://www.w3.org/2000/svg";
export const PITCH = 52;
export const CELL = 48;

// Return the length of a side of the area in pixels.
export const sideLength = (cells) => (cells - 1) * PITCH + CELL;

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

// Make a map of the area, with a margin of dark cells on the sides where a path leaves the area.
export function makeMap(image, rows, cols, paths, label) {
  const cells = paths.flat();
  const margin = (outside) => (cells.some(outside) ? PITCH : 0);
  const [left, top] = [margin(([, col]) => col < 0), margin(([row]) => row < 0)];
  const [right, bottom] = [margin(([, col]) => col >= cols), margin(([row]) => row >= rows)];
  const [width, height] = [sideLength(cols), sideLength(rows)];
  const svg = make("svg", {
    viewBox: `${-left} ${-top} ${left + width + right} ${top + height + bottom}`, role: "img", "aria-label": label,
  });
  svg.append(make("image", { href: image, x: 0, y: 0, width, height, preserveAspectRatio: "none" }));
  svg.dataset.rows = rows;
  svg.dataset.cols = cols;
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
