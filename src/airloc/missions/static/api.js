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

// Send a file as it is.
export async function sendFile(method, path, file) {
  const response = await fetch(path, { method, credentials: "same-origin", body: file }).catch(() => null);
  if (!response) throw new Refusal(0, "The server does not respond", "Check the connection");
  return answerOf(response);
}

export const pathOf = (search, rest = "") => `/searches/${encodeURIComponent(search)}${rest}`;

// Receive the view of a search now and after every change, whatever happens to the connection.
export class Feed {
  constructor(search, onView, onState) {
    Object.assign(this, { search, onView, onState, timer: 0 });
    this.open();
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
    this.timer = setTimeout(async () => {
      const error = await ask("GET", "/searches").then(() => null, (refusal) => refusal);
      if (error?.status === 401) this.onState("refused");
      else if (this.timer) this.open();
    }, 1000);
  }

  close() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.source.close();
  }
}
