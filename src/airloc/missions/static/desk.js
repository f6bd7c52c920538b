// The search desk: sign in, the list of searches, a form for a new one, and the page of a search. The part of the URL
// after # names what is shown, so that it can be shared.

import { ask } from "./api.js";
import { readCorners, readJson, readOutline, readPolygons, toBase64 } from "./files.js";
import { make, SearchPage } from "./search.js";

const by = (id) => document.getElementById(id);
const SECTIONS = ["sign-in", "list", "new", "search"];
const LIST_SECONDS = 5;
const MAX_ORTHOPHOTO = 26_000_000;

let page = null;
let timer = 0;
let visits = 0;

function showError(text) {
  by("error").textContent = text;
  by("error").hidden = !text;
}

function showSection(name, title) {
  setInert(false);
  for (const section of SECTIONS) by(section).hidden = section !== name;
  by("nav").hidden = name === "sign-in";
  document.title = `${title} · airloc`;
  by(`${name}-title`).focus({ preventScroll: true });
}

// What is shown while the next section loads takes no clicks: nothing would answer them.
function setInert(inert) {
  document.querySelector("main").inert = inert;
}

function signIn() {
  leave();
  showSection("sign-in", "Sign in");
  document.documentElement.dataset.ready = "yes";
}

function leave() {
  clearInterval(timer);
  page?.close();
  page = null;
  delete document.documentElement.dataset.ready;
  delete document.documentElement.dataset.photos;
}

// Load what a section shows, then show it, unless another was asked for in the meantime.
async function route() {
  leave();
  setInert(true);
  showError("");
  visits += 1;
  const visit = visits;
  const wanted = wantedSection();
  try {
    const show = await (wanted === "new" ? loadForm() : wanted ? loadSearch(wanted) : loadList());
    if (visit === visits) show();
  } catch (error) {
    if (visit !== visits) return;
    if (error.status === 401) signIn();
    else if (error.status === 404) {
      location.hash = "#/";
      setTimeout(() => showError(error.message), 500);
    } else {
      setInert(false);
      by("nav").hidden = false;
      showError(error.message);
    }
  }
}

function wantedSection() {
  const text = location.hash.replace(/^#\/?/, "");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;  // a damaged link names no search
  }
}

async function loadForm() {
  await fillForm();
  return () => {
    showSection("new", "New search");
    document.documentElement.dataset.ready = "yes";
  };
}

async function loadSearch(id) {
  const loaded = new SearchPage(id, { onError: showError, onRefused: signIn });
  await loaded.load();
  return () => {
    page = loaded;
    showSection("search", "Search");
    loaded.open();
  };
}

async function loadList() {
  await fillList();
  return () => {
    showSection("list", "Searches");
    timer = setInterval(() => fillList().then(() => showError(""), (error) => (error.status === 401 ? signIn() : showError(error.message))), 1000 * LIST_SECONDS);
    document.documentElement.dataset.ready = "yes";
  };
}

async function fillList() {
  const { summaries } = await ask("GET", "/searches");
  by("none").hidden = summaries.length > 0;
  const text = JSON.stringify(summaries);
  if (by("searches").dataset.shown === text) return;
  by("searches").dataset.shown = text;
  by("searches").replaceChildren(...summaries.map(({ id, name, created, cancelled, photos }) => make(
    "li", {},
    make("a", { href: `#/${encodeURIComponent(id)}`, textContent: name || `Search of ${new Date(created).toLocaleString()}` }),
    make("span", { className: "soft", textContent: `${photos} photo${photos === 1 ? "" : "s"} · begun ${new Date(created).toLocaleString()}${cancelled ? " · stopped" : ""}` }),
  )));
}

async function fillForm() {
  const { subjects, max_drones: most } = await ask("GET", "/options");
  by("drone-count").max = most;
  by("subject").replaceChildren(by("subject").options[0], ...subjects.map((name) => new Option(name.replaceAll("-", " "), name)));
}

const positionIn = (id) => (by(id).value.trim() ? readCorners(by(id).value)[0] : null);
const numberIn = (id) => (by(id).value.trim() === "" ? null : Number(by(id).value));

async function startSearch() {
  const request = {
    name: by("name").value.trim() || null,
    outline: readCorners(by("corners").value),
    goal: by("goal-file").files.length ? await toBase64(by("goal-file").files[0]) : null,
    goal_text: by("goal-words").value.trim() || null,
    cell_m: numberIn("cell"),
    budget: numberIn("budget"),
    endurance_s: numberIn("endurance") === null ? null : 60 * numberIn("endurance"),
    speed_m_s: numberIn("speed") ?? 8,
    home: positionIn("home"),
    wind_m_s: numberIn("wind") ?? 0,
    wind_from: numberIn("wind-from") ?? 0,
    reserve: (numberIn("reserve") ?? 0) / 100,
    drones: numberIn("drone-count") ?? 1,
    heading: numberIn("heading") ?? 0,
    no_fly: by("no-fly-file").files.length ? await readPolygons(by("no-fly-file").files[0]) : [],
    goal_width_m: numberIn("goal-width"),
    goal_heading: numberIn("goal-heading"),
    goal_same_day: by("same-day").checked,
    start: positionIn("start"),
    lkp: positionIn("lkp"),
    subject: by("subject").value || null,
    prior: by("prior-file").files.length ? await readJson(by("prior-file").files[0]) : null,
    map_tif: by("map-file").files.length ? await toBase64(by("map-file").files[0], MAX_ORTHOPHOTO) : null,
    match_map: by("match-map").checked,
  };
  const state = await ask("POST", "/searches", request);
  by("new-form").reset();
  location.hash = `#/${encodeURIComponent(state.id)}`;
}

function onSubmit(form, action) {
  by(form).addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = by(form).querySelector("button[type=submit]");
    button.disabled = true;
    showError("");
    try {
      await action();
    } catch (error) {
      if (error.status === 401 && form !== "sign-in-form") signIn();
      else showError(error.message);
    } finally {
      button.disabled = false;
    }
  });
}

onSubmit("sign-in-form", async () => {
  await ask("POST", "/session", { token: by("token").value });
  by("sign-in-form").reset();
  await route();
});
onSubmit("new-form", startSearch);
by("outline-file").addEventListener("change", async () => {
  const file = by("outline-file").files[0];
  if (!file) return;
  try {
    by("corners").value = await readOutline(file);
    showError("");
  } catch (error) {
    by("outline-file").value = "";
    showError(error.message);
  }
});
by("sign-out").addEventListener("click", async () => {
  await ask("DELETE", "/session").catch(() => null);
  signIn();
});
addEventListener("hashchange", route);
route();
