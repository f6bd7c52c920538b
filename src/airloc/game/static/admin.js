// The admin page: the progress of all participants, for whoever has the study's admin token. The token stays on this page.

const by = (id) => document.getElementById(id);
const STAGES = { consent: "not started", practice: "practising", games: "playing", done: "finished", withdrawn: "withdrawn" };

async function show() {
  const response = await fetch("/api/admin/people", {
    headers: { Authorization: `Bearer ${by("token").value.trim()}` }, cache: "no-store",
  }).catch(() => null);
  const answer = await response?.json().catch(() => null);
  by("error").hidden = Boolean(answer?.people);
  if (!answer?.people) {  // what was shown stays, and is asked for again
    by("error").textContent = answer?.message ?? "The server does not respond. Try again in a moment.";
    return;
  }
  by("enter").hidden = true;
  by("people").hidden = false;
  by("rows").replaceChildren(...answer.people.map(row));
}

function row(person) {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = person.person;
  const link = document.createElement("code");
  link.textContent = new URL(person.link, location.href).href;
  const cells = [STAGES[person.stage], `${person.played} of ${person.games}`, link].map((content) => {
    const cell = document.createElement("td");
    cell.append(content);
    return cell;
  });
  line.append(head, ...cells);
  return line;
}

by("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
setInterval(() => { if (!by("people").hidden) show(); }, 5000);
