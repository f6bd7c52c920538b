// The watch page: choose an area, a start, a goal and agents, and see the agents search side by side. The URL always
// describes what is shown, so that it can be shared.

import { describe } from "./agents.js";
import { box, drawEnds, makeMap, makePicture } from "./overlay.js";
import { Panel } from "./panel.js";
import { Refusal, ask } from "./server.js";

const by = (id) => document.getElementById(id);
const SPEEDS = [0.4, 0.7, 1, 1.5, 2, 3, 5, 8];  // moves per second

let options;
let search = {};
let agents = [];
let panels = [];
let step = 0;
let timer = 0;
let pickedStart = null;
let loading = 0;

const cellText = (cell) => cell.join(",");
const lastStep = () => Math.max(1, ...panels.map((panel) => panel.record.path.length - 1));

function showError(text) {
  by("error").textContent = text;
  by("error").hidden = !text;
}

function showFailure(error) {
  showError(error instanceof Refusal ? error.message : "The server does not respond. Try again in a moment.");
}

// Read the search from the URL; draw a random one if the URL describes none.
function readUrl() {
  const query = new URLSearchParams(location.search);
  const cell = (name) => {
    const match = /^(\d{1,2}),(\d{1,2})$/.exec(query.get(name) ?? "");
    const [row, col] = match ? [Number(match[1]), Number(match[2])] : [-1, -1];
    return match && row < options.rows && col < options.cols ? [row, col] : null;
  };
  const known = (query.get("agents") ?? "").split(",").filter((name) => options.agents.includes(name));
  agents = (known.length ? known : options.selected).slice(0, options.max_agents);
  const [start, goal] = [cell("start"), cell("goal")];
  const complete = options.areas.includes(query.get("area")) && start && goal && cellText(start) !== cellText(goal);
  if (complete) setSearch(query.get("area"), start, goal);
  else setRandomSearch();
}

function setSearch(area, start, goal) {
  search = { area, start, goal, rows: options.rows, cols: options.cols, budget: options.budget, image: `/api/watch/area.png?${new URLSearchParams({ area })}` };
}

function setRandomSearch() {
  const cell = () => [Math.floor(Math.random() * options.rows), Math.floor(Math.random() * options.cols)];
  const start = cell();
  let goal = cell();
  while (cellText(goal) === cellText(start)) goal = cell();
  setSearch(options.areas[Math.floor(Math.random() * options.areas.length)], start, goal);
}

function searchQuery(extra) {
  return new URLSearchParams({ area: search.area, start: cellText(search.start), goal: cellText(search.goal), ...extra });
}

// Load the searches and show them.
async function load() {
  pause();
  pickedStart = null;
  const request = ++loading;
  history.replaceState(null, "", `/watch?${searchQuery({ agents: agents.join() })}`);
  by("gif").href = `/api/watch/search.gif?${searchQuery({ agents: agents.join() })}`;
  showControls();
  try {
    const records = await Promise.all(agents.map((agent) => ask(`/api/watch/search?${searchQuery({ agent })}`)));
    if (request !== loading) return;
    panels = records.map((record) => new Panel(record, search, options.heat));
    by("panels").replaceChildren(...panels.map((panel) => panel.root));
    showError("");
    go(0);
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    if (request !== loading) return;
    panels = [];
    by("panels").replaceChildren();
    go(0);
    showFailure(error);
  }
}

function showControls() {
  if (agents.some((name) => by("variants").querySelector(`input[value="${name}"]`))) by("more").open = true;
  by("area").value = search.area;
  by("start").value = cellText(search.start);
  by("goal").value = cellText(search.goal);
  for (const input of by("agents").querySelectorAll("input")) {
    input.checked = agents.includes(input.value);
    input.disabled = !input.checked && agents.length >= options.max_agents;
  }
  by("agents-note").textContent = agents.length >= options.max_agents ? `You can watch at most ${options.max_agents} agents at once.` : "";
  by("goal-picture").replaceChildren(makePicture(search.image, options.rows, options.cols, search.goal, "Image of the place to find"));
  drawPicker();
}

function drawPicker() {
  const svg = makeMap(search.image, options.rows, options.cols, [], "The area. You can also choose the start and the goal from the lists below.");
  drawEnds(svg, pickedStart ?? search.start, search.goal, true);
  for (let row = 0; row < options.rows; row++) {
    for (let col = 0; col < options.cols; col++) {
      const cell = box([row, col], { fill: "#ffffff", "fill-opacity": 0, stroke: "#ffffff", "stroke-opacity": 0.35 });
      cell.addEventListener("click", () => pick([row, col]));
      svg.append(cell);
    }
  }
  by("picker").replaceChildren(svg);
  by("picking").textContent = pickedStart ? "Now click a square for the goal." : "Click a square for the start, then one for the goal.";
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
    by("status").textContent = panels.map(({ record }) => `${describe(record.agent).name}: ${record.found ? "found" : "not found"}.`).join(" ");
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
    by("share").textContent = "Copy the URL from the address bar";
  }
  setTimeout(() => { by("share").textContent = "Copy link"; }, 2000);
}

function chooseCells() {
  const cells = ["start", "goal"].map((id) => by(id).value.split(",").map(Number));
  if (cellText(cells[0]) === cellText(cells[1])) {
    showError("Start and goal must be different squares.");
    return;
  }
  setSearch(search.area, ...cells);
  load();
}

function fillLists() {
  by("area").replaceChildren(...options.areas.map((name) => new Option(name, name)));
  for (const id of ["start", "goal"]) {
    for (let row = 0; row < options.rows; row++) {
      for (let col = 0; col < options.cols; col++) by(id).append(new Option(`row ${row + 1}, column ${col + 1}`, `${row},${col}`));
    }
  }
  for (const name of options.agents) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "checkbox";
    input.value = name;
    input.addEventListener("change", () => {
      const chosen = options.agents.filter((agent) => by("agents").querySelector(`input[value="${agent}"]`).checked);
      if (chosen.length) {
        agents = chosen;
        load();
      } else {
        input.checked = true;
        showError("Choose at least one agent.");
      }
    });
    label.append(input, describe(name).name);
    label.title = name;
    by(/.-./.test(name) ? "variants" : "main-agents").append(label);
  }
}

async function start() {
  options = await ask("/api/watch");
  fillLists();
  readUrl();
  await load();
}

by("random").addEventListener("click", () => { setRandomSearch(); load(); });
by("area").addEventListener("change", () => { setSearch(by("area").value, search.start, search.goal); load(); });
by("start").addEventListener("change", chooseCells);
by("goal").addEventListener("change", chooseCells);
by("play").addEventListener("click", () => (timer ? pause() : play()));
by("back").addEventListener("click", () => { pause(); go(step - 1); });
by("forward").addEventListener("click", () => { pause(); go(step + 1); });
by("step").addEventListener("input", () => { pause(); go(Number(by("step").value)); });
by("share").addEventListener("click", share);
start().catch(showFailure);
