// Requests to the server: JSON in, JSON out. A refused request throws a Refusal with the problem and its cure.

export class Refusal extends Error {
  constructor(status, problem, cure) {
    super(cure ? `${problem}. ${cure}.` : `${problem}.`);
    this.status = status;
  }
}

export async function ask(method, path, body) {
  const options = body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, { method, credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal(0, "The server does not respond", "Check the connection");
  }
  return answerOf(response);
}

async function answerOf(response) {
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Refusal(response.status, answer?.problem ?? `The server responds with status ${response.status}`, answer?.cure);
  return answer;
}

const MAX_FILE = 40_000_000;

// Send a file as it is. The server closes the connection on one that is too large, and its response may be lost.
export async function sendFile(method, path, file) {
  if (file.size > MAX_FILE) throw new Refusal(413, `The file ${file.name} is larger than ${MAX_FILE / 1e6} MB`, `Reduce it to at most ${MAX_FILE / 1e6} MB`);
  const response = await fetch(path, { method, credentials: "same-origin", body: file }).catch(() => null);
  if (!response) throw new Refusal(0, "The server does not respond", "Check the connection");
  return answerOf(response);
}

export const pathOf = (search, rest = "") => `/searches/${encodeURIComponent(search)}${rest}`;

const HIDDEN_SECONDS = 15;

// Receive the view of a search now and after every change, whatever happens to the connection. A browser has only six
// connections to a server for all of its tabs: a tab that nobody sees asks for the view now and then instead.
export class Feed {
  constructor(search, onView, onState) {
    Object.assign(this, { search, onView, onState, timer: 0, listeners: new AbortController() });
    document.addEventListener("visibilitychange", () => this.follow(), { signal: this.listeners.signal });
    this.follow();
  }

  follow() {
    this.stop();
    if (!document.hidden) return this.open();
    const timer = setInterval(() => this.poll(timer), 1000 * HIDDEN_SECONDS);
    this.timer = timer;
    return this.poll(timer);
  }

  async poll(timer) {
    const [view, refusal] = await ask("GET", pathOf(this.search, "/view")).then((answer) => [answer], (error) => [null, error]);
    if (this.timer !== timer) return;
    this.onState(!refusal ? "live" : refusal.status === 401 ? "refused" : "lost");
    if (view) this.onView(view);
  }

  open() {
    this.source = new EventSource(pathOf(this.search, "/events"));
    this.source.addEventListener("view", (event) => {
      this.onState("live");
      this.onView(JSON.parse(event.data));
    });
    this.source.addEventListener("error", () => this.retry());
  }

  // The browser reconnects by itself after a lost connection, but not after a response with an error.
  retry() {
    this.onState("lost");
    if (this.source.readyState !== EventSource.CLOSED) return;
    const timer = setTimeout(async () => {
      const error = await ask("GET", "/searches").then(() => null, (refusal) => refusal);
      if (this.timer !== timer) return;
      if (error?.status === 401) this.onState("refused");
      else this.open();
    }, 1000);
    this.timer = timer;
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.source?.close();
  }

  close() {
    this.listeners.abort();
    this.stop();
  }
}
