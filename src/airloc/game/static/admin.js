// The admin page: the progress of all participants, for whoever has the study's admin token. The token stays on this page.

const by = (id) => document.getElementById(id);
const STAGES = { consent: "not started", practice: "practising", games: "playing", done: "finished", withdrawn: "withdrawn" };

async function show() {
  const response = await fetch("/api/admin/people", {
    headers: { Authorization: `Bearer ${by("token").value.trim()}` }, cache: "no-store",
  });
  const answer = await response.json();
  by("error").hidden = response.ok;
  by("people").hidden = !response.ok;
  if (!response.ok) {
    by("error").textContent = answer.message;
    return;
  }
  by("enter").hidden = true;
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
