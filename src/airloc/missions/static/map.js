// The map of a search: outline, probabilities, photos, tracks and marks on the grid, over an orthophoto or plain paper.
//
// Places are rows and columns of the grid. Leaflet's latitude is the row downwards, its longitude the column.

import { pathOf } from "./api.js";

const L = window.L;
const MARGIN = 0.6;  // cells around the grid in the first view
const CANVAS_SIDE = 2400;  // largest side of the picture of probabilities, in pixels
const MAX_CELL = 24;  // pixels of a cell in it
const COARSE = 12;  // pixels of a cell below which cells have no gaps
const PLAIN_CLUE = 0.05;  // confidence from which a photo is marked
const TRACKS = [["#ffb000", null], ["#4cc9ff", "10 6"], ["#5ee0b8", "3 6"], ["#ff7ac6", "14 5 3 5"], ["#ffffff", "6 6"]];

// The colour of a vehicle's track and the dashes that distinguish it without colour.
export const trackOf = (vehicles, id) => TRACKS[Math.max(0, vehicles.findIndex((vehicle) => vehicle.id === id)) % TRACKS.length];

const at = ([row, col]) => [-row, col];

export class SearchMap {
  constructor(root, geometry, onPick) {
    const { rows, cols, pitch_m: pitch, frame: [top, left, bottom, right] } = geometry;
    this.geometry = geometry;
    this.images = new Map();
    const crs = L.extend({}, L.CRS.Simple, { distance: (a, b) => pitch * Math.hypot(a.lat - b.lat, a.lng - b.lng) });
    const grid = L.latLngBounds(at([-0.5, -0.5]), at([rows - 0.5, cols - 0.5]));
    this.bounds = L.latLngBounds(at([top, left]), at([bottom, right]));
    this.map = L.map(root, { crs, zoomSnap: 0.05, minZoom: -8, maxZoom: 10, attributionControl: false, zoomAnimation: false, fadeAnimation: false });
    this.fit();
    ["ground", "probability", "photos"].forEach((name, order) => { this.map.createPane(name).style.zIndex = 210 + 10 * order; });
    L.control.scale({ imperial: false }).addTo(this.map);
    this.addNorth(geometry.heading);
    this.layers = Object.fromEntries(["ground", "probability", "photos", "tracks", "marks"].map((name) => [name, L.layerGroup().addTo(this.map)]));
    this.drawGround();
    this.drawOutline();
    this.drawZones();
    this.drawPorts();
    this.canvas = document.createElement("canvas");
    this.cellPixels = Math.max(1, Math.min(MAX_CELL, Math.floor(CANVAS_SIDE / Math.max(rows, cols))));
    this.canvas.width = cols * this.cellPixels;
    this.canvas.height = rows * this.cellPixels;
    this.canvas.setAttribute("aria-hidden", "true");
    const className = this.cellPixels < COARSE ? "probability coarse" : "probability";
    L.svgOverlay(this.canvas, grid, { pane: "probability", className }).addTo(this.layers.probability);
    this.map.on("click", ({ latlng }) => onPick(Math.round(-latlng.lat), Math.round(latlng.lng)));
  }

  fit() {
    this.map.fitBounds(this.bounds.pad(MARGIN / Math.max(this.geometry.rows, this.geometry.cols)), { animate: false });
  }

  close() {
    this.map.remove();
  }

  show(layer, shown) {
    if (shown) this.layers[layer].addTo(this.map);
    else this.layers[layer].remove();
  }

  addNorth(heading) {
    const north = L.control({ position: "topright" });
    north.onAdd = () => {
      const arrow = L.DomUtil.create("div", "north");
      arrow.setAttribute("role", "img");
      arrow.setAttribute("aria-label", heading ? `North is ${Math.round(heading)} degrees to the left of the map's upper edge` : "North is up");
      const needle = L.DomUtil.create("span", "", arrow);
      needle.textContent = "N";
      needle.style.rotate = `${-heading}deg`;
      return arrow;
    };
    north.addTo(this.map);
  }

  drawGround() {
    const { id, margin, rows, cols } = this.geometry;
    if (margin === null) return;
    const bounds = L.latLngBounds(at([-0.5 - margin, -0.5 - margin]), at([rows - 0.5 + margin, cols - 0.5 + margin]));
    L.imageOverlay(`${pathOf(id, "/background")}?${Date.now()}`, bounds, { pane: "ground" }).addTo(this.layers.ground);
  }

  drawOutline() {
    const rings = this.geometry.outline.map((ring) => ring.map(at));
    L.polygon(rings, { color: "#ffffff", weight: 6, opacity: 0.85, fill: false, interactive: false }).addTo(this.map);
    L.polygon(rings, { color: "#14171c", weight: 2.5, fill: false, interactive: false }).addTo(this.map);
  }

  drawZones() {
    const rings = this.geometry.no_fly.map((ring) => ring.map(at));
    if (rings.length) L.polygon(rings, { color: "#d81e1e", weight: 3, fillColor: "#d81e1e", fillOpacity: 0.35, dashArray: "6 4", interactive: false }).addTo(this.map);
  }

  drawPorts() {
    const { home, landing } = this.geometry;
    for (const [place, text] of [[home, "Home"], [landing, "Landing"]]) {
      if (!place) continue;
      L.circleMarker(at(place), { radius: 7, color: "#14171c", weight: 3, fillColor: "#ffffff", fillOpacity: 1, interactive: false }).addTo(this.map);
      this.addLabel(at(place), text, "vehicle", this.map);
    }
  }

  // Draw a view; return the probability of the brightest colour.
  update(view) {
    const top = this.drawProbability(view.poa);
    this.drawPhotos(view.photos);
    this.drawTracks(view);
    this.drawMarks(view);
    return top;
  }

  drawProbability(poa) {
    const { rows, cols, searchable, colours, cell_m: cell, pitch_m: pitch } = this.geometry;
    const top = Math.min(1, Math.max(4 / (rows * cols), ...poa.map((row) => Math.max(...row))));
    const context = this.canvas.getContext("2d");
    const size = this.cellPixels;
    const gap = size < COARSE ? 0 : Math.max(0.5, (size * (1 - cell / pitch)) / 2);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (let row = 0; row < rows; row++) {
      for (let col = 0; col < cols; col++) {
        if (!searchable[row][col]) continue;
        context.fillStyle = colours[Math.round(Math.min(1, poa[row][col] / top) * (colours.length - 1))];
        context.fillRect(col * size + gap, row * size + gap, size - 2 * gap, size - 2 * gap);
      }
    }
    return top;
  }

  // Show in every photographed cell the photo that is most like the goal.
  drawPhotos(photos) {
    const { id, cell_m: cell, pitch_m: pitch } = this.geometry;
    const half = cell / pitch / 2;
    const shown = new Map();
    for (const photo of photos) {
      const key = `${photo.row},${photo.col}`;
      if (!shown.has(key)) shown.set(key, photo);
    }
    for (const [key, { number, row, col }] of shown) {
      const earlier = this.images.get(key);
      if (earlier?.number === number) continue;
      earlier?.image.remove();
      const bounds = L.latLngBounds(at([row - half, col - half]), at([row + half, col + half]));
      const image = L.imageOverlay(pathOf(id, `/photos/${number}/cell`), bounds, { pane: "photos", className: "seen" });
      this.images.set(key, { number, image: image.addTo(this.layers.photos) });
    }
  }

  drawTracks({ tracks, state: { vehicles } }) {
    this.layers.tracks.clearLayers();
    for (const { vehicle, places } of tracks) {
      const [color, dashArray] = trackOf(vehicles, vehicle);
      const line = places.map(at);
      const options = { interactive: false, lineJoin: "round" };
      L.polyline(line, { ...options, color: "#14171c", weight: 6, opacity: 0.8 }).addTo(this.layers.tracks);
      L.polyline(line, { ...options, color, weight: 3, dashArray }).addTo(this.layers.tracks);
      L.circleMarker(line.at(-1), { ...options, radius: 6, color: "#14171c", weight: 2, fillColor: color, fillOpacity: 1 }).addTo(this.layers.tracks);
      if (vehicles.length > 1) this.addLabel(line.at(-1), vehicle, "vehicle", this.layers.tracks);
    }
  }

  drawMarks({ state, photos, waypoints }) {
    this.layers.marks.clearLayers();
    const ring = { radius: 11, weight: 3, fill: false, interactive: false };
    for (const photo of photos) {
      if (photo.verdict === false || photo.match_probability < PLAIN_CLUE) continue;
      L.circleMarker(at(photo.place), { ...ring, color: "#14171c", weight: 6 }).addTo(this.layers.marks);
      L.circleMarker(at(photo.place), { ...ring, color: "#ffc828" }).addTo(this.layers.marks);
    }
    for (const waypoint of waypoints) this.addWaypoint(waypoint, state.vehicles.length > 1 ? `\u2192 ${waypoint.vehicle}` : "Next");
    if (state.declared) this.addLabel(at(photos.find((photo) => photo.row === state.declared.row && photo.col === state.declared.col)?.place ?? [state.declared.row, state.declared.col]), "Found", "found", this.layers.marks);
  }

  addWaypoint({ row, col, place }, text) {
    const box = L.latLngBounds(at([row - 0.5, col - 0.5]), at([row + 0.5, col + 0.5]));
    L.rectangle(box, { color: "#14171c", weight: 7, fill: false, interactive: false }).addTo(this.layers.marks);
    L.rectangle(box, { color: "#4cc9ff", weight: 3.5, fill: false, interactive: false }).addTo(this.layers.marks);
    L.circleMarker(at(place), { radius: 4, color: "#14171c", weight: 2, fillColor: "#4cc9ff", fillOpacity: 1, interactive: false }).addTo(this.layers.marks);
    this.addLabel(at([row - 0.5, col]), text, "next", this.layers.marks);
  }

  // A label above a point, as text: names of vehicles come from outside.
  addLabel(point, text, kind, layer) {
    const content = document.createElement("span");
    content.textContent = text;
    L.marker(point, { icon: L.divIcon({ html: content, className: `label ${kind}`, iconSize: null }), interactive: false, keyboard: false }).addTo(layer);
  }

  // Outline the selected cell.
  select(row, col) {
    this.selected?.remove();
    const box = L.latLngBounds(at([row - 0.5, col - 0.5]), at([row + 0.5, col + 0.5]));
    this.selected = L.rectangle(box, { color: "#ffffff", weight: 3, dashArray: "4 4", fill: false, interactive: false }).addTo(this.map);
  }
}
