// The page of one search: the map, the figures, the photos and the decisions of people.

import { ask, Feed, pathOf, sendFile } from "./api.js";
import { SearchMap, trackOf } from "./map.js";

const by = (id) => document.getElementById(id);
const FEW = 8;  // photos in the list before "Show all"
const BEST = 8;  // rows of the table of segments
const LAYERS = { ground: "Orthophoto", probability: "Probability", photos: "Photos", tracks: "Tracks", marks: "Waypoints and clues" };
const STATUS = { searching: "Searching", found: "Found", spent: "No moves left", cancelled: "Stopped" };

function percent(share) {
  const text = share >= 0.01 || share === 0 ? Math.round(100 * share) : share < 0.0001 ? "under 0.01" : (100 * share).toPrecision(1);
  return `${text}\u00a0%`;
}

const segment = ({ row, col }) => `row ${row + 1}, column ${col + 1}`;
const position = (lat, lon) => `${lat.toFixed(6)}, ${lon.toFixed(6)}`;
const clock = (time) => (time ? new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }) : "time unknown");

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// Replace children that have changed; what has the focus keeps it.
function replaceChildren(parent, children) {
  if (children.length === parent.children.length && children.every((child, index) => parent.children[index] === child)) return;
  const focused = document.activeElement;
  parent.replaceChildren(...children);
  if (focused?.isConnected) focused.focus({ preventScroll: true });
}

export class SearchPage {
  constructor(id, { onError, onRefused }) {
    Object.assign(this, { id, onError, onRefused, cards: new Map(), drones: new Map(), showAll: false, listeners: new AbortController() });
  }

  async load() {
    this.geometry = await ask("GET", pathOf(this.id, "/map"));
  }

  // Draw what was loaded and follow the search. The section must be visible: the map takes its size from it.
  open() {
    this.title = this.geometry.name || `Search of ${new Date(this.geometry.created).toLocaleString()}`;
    by("search-title").textContent = this.title;
    this.showGoal();
    by("map").replaceChildren();
    this.map = new SearchMap(by("map"), this.geometry, (row, col) => this.select(row, col));
    this.addLayers();
    this.drawScale();
    by("photos").replaceChildren();
    by("row").max = this.geometry.rows;
    by("col").max = this.geometry.cols;
    this.listen();
    this.feed = new Feed(this.id, (view) => this.show(view), (state) => this.showConnection(state));
  }

  showGoal() {
    const { goal_text: text, goal_pictured: pictured } = this.geometry;
    by("goal").hidden = by("photo-goal-figure").hidden = !pictured;
    if (pictured) by("goal").src = by("photo-goal").src = pathOf(this.id, "/goal");
    by("goal-text").textContent = text ? `: ${text}` : "";
  }

  close() {
    this.listeners.abort();
    this.feed?.close();
    this.map?.close();
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  }

  listen() {
    const { signal } = this.listeners;
    const on = (id, event, action) => by(id).addEventListener(event, action, { signal });
    // The second click of a double click would meet what has moved there since the first: another photo.
    by("search").addEventListener("click", (event) => { if (event.detail > 1 && event.target.closest("button")) event.stopPropagation(); }, { signal, capture: true });
    on("order", "change", () => this.listPhotos());
    on("all", "click", () => { this.showAll = !this.showAll; this.listPhotos(); });
    on("look-up", "submit", (event) => { event.preventDefault(); this.select(by("row").value - 1, by("col").value - 1); });
    on("add-drone", "click", () => this.addDrone());
    on("ortho-file", "change", () => this.sendOrthophoto());
    on("stop", "click", () => by("stop-dialog").showModal());
    on("stop-no", "click", () => by("stop-dialog").close());
    on("stop-yes", "click", () => { by("stop-dialog").close(); this.change("DELETE", ""); });
    on("close-photo", "click", () => by("photo-dialog").close());
    on("confirm", "click", () => this.judge(this.opened, true));
    on("reject", "click", () => this.judge(this.opened, false));
  }

  // Show another orthophoto below the grid: the page of the search opens again.
  async sendOrthophoto() {
    const file = by("ortho-file").files[0];
    if (!file) return;
    try {
      await sendFile("PUT", pathOf(this.id, "/orthophoto"), file);
      dispatchEvent(new HashChangeEvent("hashchange"));
    } catch (error) {
      this.onError(error.message);
    }
    by("ortho-file").value = "";
  }

  addLayers() {
    const boxes = Object.entries(LAYERS).filter(([name]) => name !== "ground" || this.geometry.margin !== null).map(([name, text]) => {
      const box = make("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => this.map.show(name, box.checked));
      return make("label", { className: "check" }, box, text);
    });
    by("layers").replaceChildren(by("layers").firstElementChild, ...boxes);
    by("map").classList.toggle("over-ground", this.geometry.margin !== null);
  }

  drawScale() {
    const context = by("scale").getContext("2d");
    this.geometry.colours.forEach((colour, index) => {
      context.fillStyle = colour;
      context.fillRect(index, 0, 1, 1);
    });
  }

  showConnection(state) {
    if (state === "refused") this.onRefused();
    by("live").className = `live ${state}`;
    by("live").textContent = state === "live" ? "Live" : `Connection lost, trying again${this.updated ? `; last update ${clock(this.updated)}` : ""}`;
  }

  show(view) {
    this.view = view;
    this.updated = Date.now();
    const top = this.map.update(view);
    by("top").textContent = percent(top);
    this.showFacts(view);
    this.showDrones(view.state);
    this.showBest(view);
    this.listPhotos();
    if (this.selected) this.showSegment();
    if (by("photo-dialog").open) this.showPhoto(this.opened);
    document.documentElement.dataset.photos = view.photos.length;
    document.documentElement.dataset.ready = "yes";
  }

  showFacts({ state, photos }) {
    const status = STATUS[state.status];
    document.title = `${status} · ${this.title} · airloc`;
    by("summary").textContent = this.describe(state, photos);
    by("summary").className = `summary ${state.status}`;
    const facts = [["Status", status]];
    if (state.declared) facts.push(["Declared", position(state.declared.lat, state.declared.lon)]);
    facts.push(
      ["Segments photographed", `${state.photos} of ${this.geometry.searchable.flat().filter(Boolean).length}`],
      ["Probability of success (POS)", percent(state.probability_of_success)],
      ["Flight height", `${Math.round(state.height_m)} m`],
      ...state.warnings.map((warning) => ["Warning", warning]),
    );
    by("facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
    by("stop").hidden = state.status === "cancelled";
  }

  showDrones({ status, vehicles }) {
    const flying = vehicles.filter(({ active }) => active);
    const ended = status === "found" || status === "cancelled";
    replaceChildren(by("drones"), vehicles.map(({ id, next, moves_left: left, active }) => {
      const row = this.drones.get(id) ?? this.makeDrone(id);
      const [where, moves] = row.querySelectorAll("td");
      where.textContent = !active ? "withdrawn" : next ? `${segment(next)}\n${position(next.lat, next.lon)}` : ended ? "none, the search has ended" : "none in reach";
      moves.textContent = left;
      const button = row.querySelector("button");
      const onDuty = active && next;
      button.textContent = onDuty ? "Withdraw" : "Next sortie";
      button.ariaLabel = `${button.textContent}: drone ${id}`;
      button.hidden = ended || Boolean(onDuty && flying.length === 1);
      button.onclick = () => (onDuty ? this.change("DELETE", `/vehicles/${encodeURIComponent(id)}`) : this.change("POST", "/vehicles", { id }));
      const [color, dashes] = trackOf(vehicles, id);
      row.querySelector("line").setAttribute("stroke", color);
      if (dashes) row.querySelector("line").setAttribute("stroke-dasharray", dashes);
      return row;
    }));
    by("add-drone").hidden = ended;
  }

  makeDrone(id) {
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of Object.entries({ width: 28, height: 12, "aria-hidden": "true" })) swatch.setAttribute(name, value);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of Object.entries({ x1: 0, x2: 28, y1: 6, y2: 6, "stroke-width": 4 })) line.setAttribute(name, value);
    swatch.append(line);
    const row = make("tr", {}, make("th", { scope: "row" }, swatch, id), make("td"), make("td"), make("td", {}, make("button", { type: "button" })));
    this.drones.set(id, row);
    return row;
  }

  addDrone() {
    const names = new Set(this.view.state.vehicles.map(({ id }) => id));
    let number = 1;
    while (names.has(String(number))) number++;
    this.change("POST", "/vehicles", { id: String(number) });
  }

  describe(state, photos) {
    const best = `The most probable segment is ${segment(state.best)}, ${percent(state.best_probability)}.`;
    const seen = `${photos.length} photo${photos.length === 1 ? "" : "s"}.`;
    if (state.status === "cancelled") return `The search was stopped. ${seen}`;
    if (state.declared && photos.some(({ verdict }) => verdict)) return `A person has confirmed the goal at ${position(state.declared.lat, state.declared.lon)}. ${seen}`;
    if (state.declared) return `A photo shows the goal with a confidence of ${percent(state.best_probability)}, at ${position(state.declared.lat, state.declared.lon)}. Confirm or reject it. ${seen}`;
    const next = state.vehicles.filter((vehicle) => vehicle.next);
    if (next.length > 1) return `Searching. Next segments: ${next.map((vehicle) => `drone ${vehicle.id} ${segment(vehicle.next)}`).join("; ")}. ${best} ${seen}`;
    if (state.next) return `Searching. Next segment: ${segment(state.next)}. ${best} ${seen}`;
    return `No moves are left: swap batteries and start the next sortie. ${best} ${seen}`;
  }

  showBest({ poa, pod }) {
    const cells = poa.flatMap((line, row) => line.map((share, col) => ({ row, col, share })));
    const rows = cells.sort((a, b) => b.share - a.share).slice(0, BEST).map(({ row, col, share }) => make(
      "tr", {},
      make("th", { scope: "row", textContent: segment({ row, col }) }),
      ...[percent(share), percent(pod[row][col]), position(...this.geometry.positions[row][col])].map((textContent) => make("td", { textContent })),
    ));
    by("best").replaceChildren(...rows);
  }

  select(row, col) {
    if (!(row >= 0 && row < this.geometry.rows && col >= 0 && col < this.geometry.cols)) return;
    this.selected = { row, col };
    by("row").value = row + 1;
    by("col").value = col + 1;
    this.map.select(row, col);
    this.showSegment();
  }

  showSegment() {
    const { row, col } = this.selected;
    const where = position(...this.geometry.positions[row][col]);
    by("segment").textContent = this.geometry.searchable[row][col]
      ? `Segment ${segment(this.selected)} at ${where}: POA ${percent(this.view.poa[row][col])}, POD ${percent(this.view.pod[row][col])}.`
      : `Segment ${segment(this.selected)} at ${where} is outside the search area.`;
  }

  // List the photos in their order; cards stay the same elements, so that nobody clicks on another photo than intended.
  listPhotos() {
    if (!this.view) return;
    const photos = [...this.view.photos];
    if (by("order").value === "latest") photos.sort((a, b) => b.number - a.number);
    const shown = this.showAll ? photos : photos.slice(0, FEW);
    const focused = document.activeElement;
    const place = [...by("photos").children].indexOf(focused.closest("#photos li"));
    replaceChildren(by("photos"), shown.map((photo) => this.cardOf(photo)));
    if (place >= 0 && (focused.disabled || !focused.isConnected)) {  // go on with the photo that has moved there
      by("photos").children[Math.min(place, shown.length - 1)].querySelector("button").focus({ preventScroll: true });
    }
    by("no-photos").hidden = photos.length > 0;
    by("all").hidden = photos.length <= FEW;
    by("all").textContent = this.showAll ? `Show ${FEW} photos` : `Show all ${photos.length} photos`;
  }

  cardOf(photo) {
    let card = this.cards.get(photo.number);
    if (!card) {
      const { number } = photo;
      const image = make("img", { src: pathOf(this.id, `/photos/${number}/thumbnail`), alt: "", loading: "lazy" });
      const open = make("button", { type: "button", className: "thumbnail", ariaLabel: `Photo ${number}: compare with the goal` }, image);
      open.addEventListener("click", () => this.showPhoto(number));
      const confirm = make("button", { type: "button", textContent: "Confirm", ariaLabel: `Confirm photo ${number}` });
      confirm.addEventListener("click", () => this.judge(number, true));
      const reject = make("button", { type: "button", textContent: "Reject", ariaLabel: `Reject photo ${number}` });
      reject.addEventListener("click", () => this.judge(number, false));
      card = make("li", {}, open, make("div", { className: "words" }, make("p", { className: "what" }), make("p", { className: "soft" }), make("p", { className: "verdict" }, confirm, reject)));
      this.cards.set(number, card);
    }
    const [what, where] = card.querySelectorAll("p");
    what.textContent = `Confidence ${percent(photo.match_probability)}${{ true: " · confirmed", false: " · rejected" }[photo.verdict] ?? ""}`;
    const drone = this.view.state.vehicles.length > 1 ? ` · drone ${photo.vehicle}` : "";
    where.textContent = `Photo ${photo.number} · ${segment(photo)} · ${clock(photo.received)}${drone}`;
    card.className = { true: "confirmed", false: "rejected" }[photo.verdict] ?? "";
    const [confirm, reject] = card.querySelectorAll(".verdict button");
    const over = this.view.state.status === "cancelled";
    confirm.disabled = over || photo.verdict === true;
    reject.disabled = over || photo.verdict === false;
    return card;
  }

  showPhoto(number) {
    const photo = this.view.photos.find((one) => one.number === number);
    this.opened = number;
    by("photo-title").textContent = `Photo ${number}, confidence ${percent(photo.match_probability)}`;
    by("photo-large").alt = `Photo ${number}`;
    const file = pathOf(this.id, `/photos/${number}/image`);
    if (by("photo-large").getAttribute("src") !== file) by("photo-large").src = file;
    by("photo-link").href = file;
    by("photo-link").setAttribute("aria-label", `Photo ${number} in full size`);
    const verdict = { true: "A person has confirmed this photo.", false: "A person has rejected this photo." }[photo.verdict] ?? "Nobody has judged this photo yet.";
    by("photo-text").textContent = `Segment ${segment(photo)}, ${clock(photo.received)}. The goal would be at ${position(photo.lat, photo.lon)}. ${verdict}`;
    const over = this.view.state.status === "cancelled";
    by("confirm").disabled = over || photo.verdict === true;
    by("reject").disabled = over || photo.verdict === false;
    if (!by("photo-dialog").open) by("photo-dialog").showModal();
  }

  async judge(number, goal) {
    by("photo-dialog").close();
    await this.change("POST", `/photos/${number}/verdict`, { goal });
  }

  async change(method, path, body) {
    try {
      await ask(method, pathOf(this.id, path), body);
      this.onError("");
    } catch (error) {
      if (error.status === 401) this.onRefused();
      else this.onError(error.message);
    }
  }
}
