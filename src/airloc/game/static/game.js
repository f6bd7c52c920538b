// The game page: begins games, sends moves, and shows the responses. The server decides everything.

import { Board } from "./board.js";
import { Ending, agentsSummary, headline, summary } from "./ending.js";
import { showExample } from "./example.js";
import { NAMES, moveOfKey, plural, target } from "./moves.js";
import { Refusal, ask, paint } from "./server.js";

const SECTIONS = ["welcome", "consent", "confirm", "game", "ending", "note"];
const WARNINGS = [30, 10, 5];

const by = (id) => document.getElementById(id);
const announce = (text) => { by("status").textContent = text; };

let me;
let game = null;
let ended = null;  // the game whose ending is shown
let deadline = Infinity;
let asking = false;
let warned = new Set();
let errorTimer = 0;

const board = new Board(by("board"), move);
const ending = new Ending(by("map"), by("routes"));
const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

function show(section) {
  for (const name of SECTIONS) by(name).hidden = name !== section;
  by("withdraw").hidden = !["practice", "games", "done"].includes(me?.stage) || ["confirm", "game"].includes(section);
  if (section !== "ending") ended = null;
  document.documentElement.dataset.ready = "yes";
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
  if (me.stage === "withdrawn") return showWithdrawn();
  by("rule-budget").textContent = `You have ${limits()} for each game.`;
  const recorded = me.stage === "games";
  by("welcome-title").textContent = recorded ? `Game ${me.next + 1} of ${me.games}` : me.mode === "study" ? "Practice" : "Find the place";
  by("start").textContent = recorded ? "Start" : me.mode === "study" ? "Practise" : "Start";
  by("to-recorded").hidden = me.stage !== "practice";
  by("tally").textContent = tally();
  show("welcome");
  by("start").focus({ preventScroll: true });
}

function limits() {
  const time = me.seconds === null ? "" : ` and ${plural(Math.round(me.seconds), "second")}`;
  return `${plural(me.budget, "move")}${time}`;
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
  by("consent-title").focus({ preventScroll: true });
}

function showThanks() {
  const games = me.games === 1 ? "your game" : `all ${me.games} games`;
  showNote("Thank you", `You have played ${games} and found ${plural(me.found, "place")}. You can close this page.`);
}

function showWithdrawn() {
  showNote("You have withdrawn", "Your games, your age and your gender have been deleted from the study. You can close this page.");
}

function disagree() {
  showNote("You do not take part", "Nothing about you has been recorded. You can close this page. If you change your mind, open your link again.");
}

function showNote(title, text) {
  by("note-title").textContent = title;
  by("note-text").textContent = text;
  show("note");
  by("note-title").focus();
}

// Ask before something that cannot be undone.
function confirmFirst(title, text, [yes, no], action) {
  by("confirm-title").textContent = title;
  by("confirm-text").textContent = text;
  by("confirm-yes").textContent = yes;
  by("confirm-no").textContent = no;
  by("confirm-yes").onclick = () => attempt(action);
  show("confirm");
  by("confirm-title").focus();
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
  else end(state);
}

// Show a game in progress.
function play(state) {
  game = state;
  warned = new Set();
  by("game-title").textContent = state.slot === null
    ? (me.mode === "study" ? "Practice game" : "Search") : `Game ${state.slot + 1} of ${me.games}`;
  paint(by("goal"), state.goal, state.cell);
  by("goal").hidden = state.text !== null;
  by("goal-text").hidden = state.text === null;
  by("game").classList.toggle("described", state.text !== null);
  by("goal-text").textContent = state.text ?? "";
  paint(by("glimpse"), state.patches.at(-1), state.cell);
  board.begin(state);
  by("dots").replaceChildren(...Array.from({ length: state.budget }, () => document.createElement("i")));
  by("time").hidden = state.seconds === null;
  show("game");
  by("board").scrollIntoView({ block: "nearest" });
  count();
  board.cellAt(state.position)?.focus({ preventScroll: true });
  announce(`${plural(state.moves_left, "move")} left. Use the arrow keys, and Q, E, Z and C for diagonal moves.`);
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
  by("seconds-word").textContent = Math.ceil(left) === 1 ? "second left" : "seconds left";
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
    paint(by("glimpse"), answer.patch, game.cell);
    board.visit(answer.position, answer.turn, answer.patch);
    board.mark(answer.position, answer.ending === null);
    count();
    const [row, col] = answer.position;
    announce(`Moved ${NAMES[number]} to row ${row + 1}, column ${col + 1}. ${plural(answer.moves_left, "move")} left.`);
    asking = false;
    if (answer.ending !== null) end(game);
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
      await sleep(1000);
    }
  }
}

// Load the state of the game: after a refusal, when time runs out, when the page becomes visible again.
async function refresh() {
  if (!game || asking) return;
  asking = true;
  try {
    const state = await askUntilAnswered(`/api/games/${game.game}`);
    if (state.ending !== null) end(state);
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

// Show the end of a game at once; the agents' paths come later.
function end(state) {
  const { reveal } = state;
  game = null;
  by("ending-title").textContent = headline(reveal);
  by("ending-text").textContent = summary(reveal);
  by("ending-agents").textContent = agentsSummary(null);
  paint(by("ending-goal"), state.goal, state.cell);
  ending.show(reveal, state);
  by("again").disabled = true;
  show("ending");
  ended = state.game;
  by("ending-title").focus({ preventScroll: true });
  scrollTo(0, 0);
  announce(`${headline(reveal)}. ${summary(reveal)}`);
  attempt(async () => {
    me = await askUntilAnswered("/api/me");
    offerNext();
    await showAgents(state.game);
  });
}

function offerNext() {
  const practice = me.stage === "practice";
  const numbered = me.mode === "study" ? `Game ${me.next + 1} of ${me.games}` : "Next game";
  by("again").textContent = me.stage === "done" ? "Finish" : practice ? "Practise again" : numbered;
  by("again").disabled = false;
  by("stop-practice").hidden = !practice;
  by("ending-tally").textContent = tally();
}

// Add the agents' paths as soon as the server has them, unless the player has gone on.
async function showAgents(id) {
  let agents = null;
  for (let wait = 300; agents === null && ended === id; wait = Math.min(3000, 1.5 * wait)) {
    agents = await askForAgents(id);
    if (agents === null) await sleep(wait);
  }
  if (ended !== id) return;
  by("ending-agents").textContent = agentsSummary(agents);
  ending.addAgents(agents);
}

// Return the agents' paths, null if they are not ready, or none if the server has deleted the game.
async function askForAgents(id) {
  try {
    return (await ask(`/api/games/${id}/agents`)).agents;
  } catch (error) {
    return error instanceof Refusal && error.status === 404 ? [] : null;
  }
}

function next() {
  if (by("again").disabled) return undefined;
  return me.stage === "done" ? showThanks() : begin(me.stage === "games" ? "recorded" : "free");
}

function offerRecorded() {
  const games = me.games === 1 ? "The next game is recorded" : `The next ${me.games} games are recorded`;
  confirmFirst("Ready for the recorded games?",
    `${games}. You play each once, with ${limits()}, and you cannot go back to practice. The first game starts at once.`,
    [`Start game 1 of ${me.games}`, "Back to practice"], async () => {
      await ask("/api/practised", {});
      me = await ask("/api/me");
      await begin("recorded");
    });
}

function offerWithdrawal() {
  confirmFirst("Withdraw from the study?",
    "Your games, your age and your gender will be deleted from the study. You cannot take part again.",
    ["Withdraw and delete", "Go back"], async () => {
      await ask("/api/withdrawal", {});
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
by("to-recorded").addEventListener("click", offerRecorded);
by("stop-practice").addEventListener("click", offerRecorded);
by("consent-form").addEventListener("submit", agree);
by("disagree").addEventListener("click", disagree);
by("withdraw").addEventListener("click", offerWithdrawal);
by("confirm-no").addEventListener("click", () => attempt(welcome));
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && ended && !event.repeat && !event.target.closest("button, a")) next();
  const number = moveOfKey(event);
  if (number === undefined || !game || by("game").hidden) return;
  event.preventDefault();
  if (!event.repeat) move(number);  // a key held down makes one move
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
addEventListener("focus", refresh);
addEventListener("pagehide", () => { if (game) navigator.sendBeacon(`/api/games/${game.game}/leave`); });
showExample(by("example-goal"), by("example-start"), by("example-end"));
setInterval(tick, 200);
attempt(welcome);
