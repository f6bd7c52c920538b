// Watching: pick an area, start, goal and agents, and see them search side by side. The address always says what is
// shown, so that it can be shared.

import { box, drawEnds, makeMap } from "./overlay.js";
import { Panel } from "./panel.js";
import { ask } from "./server.js";

const by = (id) => document.getElementById(id);
const SPEEDS = [0.4, 0.7, 1, 1.5, 2, 3, 5, 8];  // moves a second

let what;
let search = {};
let agents = [];
let panels = [];
let step = 0;
let timer = 0;
let pickedStart = null;
let loading = 0;

const cellText = (cell) => cell.join(",");
const lastStep = () => Math.max(1, ...panels.map((panel) => panel.track.path.length - 1));

function trouble(text) {
  by("trouble").textContent = text;
  by("trouble").hidden = !text;
}

// What the address asks for; anything that makes no sense there is drawn at random.
function fromAddress() {
  const given = new URLSearchParams(location.search);
  const cell = (name) => {
    const match = /^(\d{1,2}),(\d{1,2})$/.exec(given.get(name) ?? "");
    const [row, col] = match ? [Number(match[1]), Number(match[2])] : [-1, -1];
    return match && row < what.rows && col < what.cols ? [row, col] : null;
  };
  const known = (given.get("agents") ?? "").split(",").filter((name) => what.agents.includes(name));
  agents = (known.length ? known : what.chosen).slice(0, what.most);
  const [start, goal] = [cell("start"), cell("goal")];
  const complete = what.areas.includes(given.get("area")) && start && goal && cellText(start) !== cellText(goal);
  if (complete) setSearch(given.get("area"), start, goal);
  else surprise();
}

function setSearch(area, start, goal) {
  search = { area, start, goal, rows: what.rows, cols: what.cols, budget: what.budget, picture: `/api/watch/area.png?${new URLSearchParams({ area })}` };
}

function surprise() {
  const cell = () => [Math.floor(Math.random() * what.rows), Math.floor(Math.random() * what.cols)];
  const start = cell();
  let goal = cell();
  while (cellText(goal) === cellText(start)) goal = cell();
  setSearch(what.areas[Math.floor(Math.random() * what.areas.length)], start, goal);
}

function query(extra) {
  return new URLSearchParams({ area: search.area, start: cellText(search.start), goal: cellText(search.goal), ...extra });
}

// Ask for the searches and lay them out.
async function load() {
  pause();
  pickedStart = null;
  const turn = ++loading;
  history.replaceState(null, "", `/watch?${query({ agents: agents.join() })}`);
  by("gif").href = `/api/watch/search.gif?${query({ agents: agents.join() })}`;
  showControls();
  try {
    const tracks = await Promise.all(agents.map((agent) => ask(`/api/watch/search?${query({ agent })}`)));
    if (turn !== loading) return;
    panels = tracks.map((track) => new Panel(track, search, what.heat));
    by("panels").replaceChildren(...panels.map((panel) => panel.root));
    trouble("");
    go(0);
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    trouble(error.message);
  }
}

function showControls() {
  if (agents.some((name) => by("variants").querySelector(`input[value="${name}"]`))) by("more").open = true;
  by("area").value = search.area;
  by("start").value = cellText(search.start);
  by("goal").value = cellText(search.goal);
  for (const input of by("agents").querySelectorAll("input")) {
    input.checked = agents.includes(input.value);
    input.disabled = !input.checked && agents.length >= what.most;
  }
  by("agents-note").textContent = agents.length >= what.most ? `At most ${what.most} side by side.` : "";
  drawPicker();
}

function drawPicker() {
  const svg = makeMap(search.picture, what.rows, what.cols, [], "The area; the start and the goal can also be chosen from the lists beside it");
  drawEnds(svg, pickedStart ?? search.start, search.goal, true);
  for (let row = 0; row < what.rows; row++) {
    for (let col = 0; col < what.cols; col++) {
      const cell = box([row, col], { fill: "#ffffff", "fill-opacity": 0, stroke: "#ffffff", "stroke-opacity": 0.35 });
      cell.addEventListener("click", () => pick([row, col]));
      svg.append(cell);
    }
  }
  by("picker").replaceChildren(svg);
  by("picking").textContent = pickedStart ? "Now click a cell for the goal." : "Click a cell for the start, then one for the goal.";
}

function pick(cell) {
  if (!pickedStart) {
    pickedStart = cell;
    drawPicker();
  } else if (cellText(cell) !== cellText(pickedStart)) {
    setSearch(search.area, pickedStart, cell);
    load();
  }
}

function go(wanted) {
  step = Math.min(Math.max(0, wanted), lastStep());
  panels.forEach((panel) => panel.show(step));
  by("step").max = lastStep();
  by("step").value = step;
  by("step-text").textContent = `${step} of ${lastStep()}`;
  by("back").disabled = step === 0;
  by("forward").disabled = step === lastStep();
  document.documentElement.dataset.step = step;
  if (step === lastStep()) {
    pause();
    by("say").textContent = panels.map(({ track }) => `${track.agent}: ${track.found ? "found" : "not found"}.`).join(" ");
  }
}

function play() {
  if (step === lastStep()) go(0);
  by("play").textContent = "Pause";
  const next = () => {
    timer = setTimeout(() => {
      go(step + 1);
      if (timer) next();
    }, 1000 / SPEEDS[by("speed").value - 1]);
  };
  next();
}

function pause() {
  clearTimeout(timer);
  timer = 0;
  by("play").textContent = "Play";
}

async function share() {
  try {
    await navigator.clipboard.writeText(location.href);
    by("share").textContent = "Copied";
  } catch {
    by("share").textContent = "Copy it from the address bar";
  }
  setTimeout(() => { by("share").textContent = "Copy link"; }, 2000);
}

function chooseCells() {
  const cells = ["start", "goal"].map((id) => by(id).value.split(",").map(Number));
  if (cellText(cells[0]) === cellText(cells[1])) {
    trouble("Start and goal have to be different cells.");
    return;
  }
  setSearch(search.area, ...cells);
  load();
}

function fillLists() {
  by("area").replaceChildren(...what.areas.map((name) => new Option(name, name)));
  for (const id of ["start", "goal"]) {
    for (let row = 0; row < what.rows; row++) {
      for (let col = 0; col < what.cols; col++) by(id).append(new Option(`row ${row + 1}, column ${col + 1}`, `${row},${col}`));
    }
  }
  for (const name of what.agents) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "checkbox";
    input.value = name;
    input.addEventListener("change", () => {
      agents = what.agents.filter((agent) => by("agents").querySelector(`input[value="${agent}"]`).checked);
      if (agents.length) load();
      else trouble("Choose an agent.");
    });
    label.append(input, name);
    by(/-no-|-research/.test(name) ? "variants" : "main-agents").append(label);
  }
}

async function begin() {
  what = await ask("/api/watch");
  fillLists();
  fromAddress();
  await load();
}

by("random").addEventListener("click", () => { surprise(); load(); });
by("area").addEventListener("change", () => { setSearch(by("area").value, search.start, search.goal); load(); });
by("start").addEventListener("change", chooseCells);
by("goal").addEventListener("change", chooseCells);
by("play").addEventListener("click", () => (timer ? pause() : play()));
by("back").addEventListener("click", () => { pause(); go(step - 1); });
by("forward").addEventListener("click", () => { pause(); go(step + 1); });
by("step").addEventListener("input", () => { pause(); go(Number(by("step").value)); });
by("share").addEventListener("click", share);
begin().catch((error) => trouble(error.message));
