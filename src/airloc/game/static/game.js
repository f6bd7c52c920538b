// The game page: begins games, sends moves, and shows the responses. The server decides everything.

import { Board } from "./board.js";
import { headline, showEnding, summary } from "./ending.js";
import { NAMES, moveOfKey, plural, target } from "./moves.js";
import { Refusal, ask, paint } from "./server.js";

const SECTIONS = ["welcome", "consent", "game", "ending", "note"];
const WARNINGS = [30, 10, 5];

const by = (id) => document.getElementById(id);
const announce = (text) => { by("status").textContent = text; };

let me;
let game = null;
let deadline = Infinity;
let asking = false;
let warned = new Set();
let errorTimer = 0;

const board = new Board(by("board"), move);

function show(section) {
  for (const name of SECTIONS) by(name).hidden = name !== section;
}

function showError(text) {
  clearTimeout(errorTimer);
  by("error").textContent = text;
  by("error").hidden = false;
  errorTimer = setTimeout(() => { by("error").hidden = true; }, 6000);
}

// Before a game: load the player and show the welcome section.
async function welcome() {
  me = await ask("/api/me");
  by("to-watch").hidden = me.mode !== "play";
  if (me.current) return resume(me.current);
  if (me.stage === "consent") return showConsent();
  if (me.stage === "done") return showThanks();
  const time = me.seconds === null ? "" : ` and ${plural(Math.round(me.seconds), "second")}`;
  by("rule-budget").textContent = `You have ${plural(me.budget, "move")}${time} for each game.`;
  const recorded = me.stage === "games";
  by("welcome-title").textContent = recorded ? `Game ${me.next + 1} of ${me.games}` : me.mode === "study" ? "Practice" : "Find the place";
  by("start").textContent = recorded ? "Start" : me.mode === "study" ? "Practise" : "Start";
  by("to-recorded").hidden = me.stage !== "practice";
  by("tally").textContent = tally();
  show("welcome");
  by("start").focus({ preventScroll: true });
  document.documentElement.dataset.ready = "yes";
}

function tally() {
  if (me.mode === "study") {
    return me.stage === "practice" ? "Practise as long as you like. Practice games are not recorded." : "";
  }
  return me.tally.played ? `Score: ${me.tally.found} of ${me.tally.played} found.` : "";
}

function showConsent() {
  by("consent-text").replaceChildren(...me.consent.split(/\n\s*\n/).map((text) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    return paragraph;
  }));
  show("consent");
  document.documentElement.dataset.ready = "yes";
}

function showThanks() {
  showNote("Thank you", `You have played all ${me.games} games and found ${plural(me.found, "place")}. You can close this page.`);
}

function showNote(title, text) {
  by("note-title").textContent = title;
  by("note-text").textContent = text;
  show("note");
  by("note-title").focus();
  document.documentElement.dataset.ready = "yes";
}

async function agree(event) {
  event.preventDefault();
  const age = by("age").value === "" ? null : Number(by("age").value);
  await attempt(async () => {
    await ask("/api/consent", { age, gender: by("gender").value || null });
    await welcome();
  });
}

async function begin(kind) {
  await attempt(async () => play(await ask("/api/games", { kind })));
}

async function resume(id) {
  const state = await ask(`/api/games/${id}`);
  if (state.ending === null) play(state);
  else await end(state);
}

// Show a game in progress.
function play(state) {
  game = state;
  warned = new Set();
  by("game-title").textContent = state.slot === null
    ? (me.mode === "study" ? "Practice game" : "Search") : `Game ${state.slot + 1} of ${me.games}`;
  paint(by("goal"), state.goal, state.cell);
  board.begin(state);
  by("dots").replaceChildren(...Array.from({ length: state.budget }, () => document.createElement("i")));
  by("time").hidden = state.seconds === null;
  show("game");
  by("board").scrollIntoView({ block: "nearest" });
  count();
  board.cellAt(state.position)?.focus({ preventScroll: true });
  announce(`${plural(state.moves_left, "move")} left. Use the arrow keys, or the number pad for diagonal moves.`);
  document.documentElement.dataset.ready = "yes";
}

function count() {
  by("moves-left").textContent = game.moves_left;
  by("moves-word").textContent = game.moves_left === 1 ? "move left" : "moves left";
  [...by("dots").children].forEach((dot, number) => dot.classList.toggle("spent", number >= game.moves_left));
  deadline = game.seconds_left === null ? Infinity : performance.now() + 1000 * game.seconds_left;
  tick();
}

function tick() {
  if (!game || game.ending !== null || deadline === Infinity) return;
  const left = Math.max(0, (deadline - performance.now()) / 1000);
  by("seconds-left").textContent = Math.ceil(left);
  by("time-bar").style.transform = `scaleX(${left / game.seconds})`;
  by("time").classList.toggle("urgent", left <= 10);
  for (const mark of WARNINGS) {
    if (left <= mark && left > mark - 1 && !warned.has(mark)) {
      warned.add(mark);
      announce(`${mark} seconds left.`);
    }
  }
  if (left === 0) refresh();
}

async function move(number) {
  if (!game || game.ending !== null || asking) return;
  if (!board.contains(target(game.position, number))) {
    announce("The area ends here.");
    return;
  }
  asking = true;
  try {
    const answer = await ask(`/api/games/${game.game}/moves`, { turn: game.turn, move: number });
    Object.assign(game, answer);
    board.visit(answer.position, answer.turn, answer.patch);
    board.mark(answer.position, answer.ending === null);
    count();
    const [row, col] = answer.position;
    announce(`Moved ${NAMES[number]} to row ${row + 1}, column ${col + 1}. ${plural(answer.moves_left, "move")} left.`);
    asking = false;
    if (answer.ending !== null) await end(game);
  } catch (error) {
    asking = false;
    if (error instanceof Refusal && error.reason === "turn") showError("You played this game in another window.");
    else if (error instanceof Refusal && error.reason !== "over") showError(error.message);
    await refresh();
  }
}

// Repeat a request until the server responds, and tell the player.
async function askUntilAnswered(path) {
  for (let tries = 0; ; tries++) {
    try {
      const answer = await ask(path);
      if (tries) by("error").hidden = true;
      return answer;
    } catch (error) {
      if (error instanceof Refusal && error.status < 500 && error.status !== 429) throw error;
      showError(error instanceof Refusal ? error.message : "The server does not respond. Trying again.");
      await new Promise((done) => { setTimeout(done, 1000); });
    }
  }
}

// Load the state of the game: after a refusal, when time runs out, when the page becomes visible again.
async function refresh() {
  if (!game || asking) return;
  asking = true;
  try {
    const state = await askUntilAnswered(`/api/games/${game.game}`);
    if (state.ending !== null) await end(state);
    else if (state.turn !== game.turn) play(state);
    else {
      game.seconds_left = state.seconds_left;
      count();
    }
  } catch {
    game = null;  // the server has deleted the game
    await attempt(welcome);
  } finally {
    asking = false;
  }
}

async function end(state) {
  const id = state.game;
  game = { ...state };
  const [reveal, about] = await Promise.all([askUntilAnswered(`/api/games/${id}/reveal`), askUntilAnswered("/api/me")]);
  me = about;
  game = null;
  by("ending-title").textContent = headline(reveal);
  by("ending-text").textContent = summary(reveal);
  showEnding(reveal, `/api/games/${id}/area.png`, me, by("map"), by("routes"));
  const practice = me.stage === "practice";
  by("again").textContent = me.stage === "done" ? "Finish" : practice ? "Practise again" : me.mode === "study" ? `Game ${me.next + 1} of ${me.games}` : "Next game";
  by("stop-practice").hidden = !practice;
  by("ending-tally").textContent = tally();
  show("ending");
  by("ending-title").focus({ preventScroll: true });
  scrollTo(0, 0);
  announce(`${headline(reveal)}. ${summary(reveal)}`);
}

const next = () => me.stage === "done" ? showThanks() : begin(me.stage === "games" ? "recorded" : "free");

async function startRecorded() {
  await attempt(async () => {
    await ask("/api/practised", {});
    await welcome();
  });
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refusal && error.reason === "game-in-progress") return attempt(welcome);
    if (error instanceof Refusal && error.reason === "no-link") return showNote("You need a personal link", error.message);
    showError(error instanceof Refusal ? error.message : "The server does not respond. Reload the page in a moment.");
  }
  return undefined;
}

by("start").addEventListener("click", next);
by("again").addEventListener("click", next);
by("to-recorded").addEventListener("click", startRecorded);
by("stop-practice").addEventListener("click", startRecorded);
by("consent-form").addEventListener("submit", agree);
document.addEventListener("keydown", (event) => {
  const number = moveOfKey(event);
  if (number === undefined || !game || by("game").hidden) return;
  event.preventDefault();
  if (!event.repeat) move(number);  // a key held down makes one move
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
addEventListener("focus", refresh);
setInterval(tick, 200);
attempt(welcome);
