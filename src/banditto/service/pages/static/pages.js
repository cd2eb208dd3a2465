// Parts of a page that come later: what is asked for with a button, what loads by itself, and what follows a log.
"use strict";

async function fill(place, address) {
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.redirected) { location.reload(); return; } // signed out meanwhile
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const inner = answer.ok ? page.body : page.querySelector("main");
    place.replaceChildren(...inner.childNodes);
  } catch {
    place.textContent = "The service does not answer. Load the page again.";
  }
  place.removeAttribute("aria-busy");
}

function prepare(root) {
  for (const place of root.querySelectorAll("[data-load]")) {
    fill(place, place.dataset.load);
  }
  for (const place of root.querySelectorAll("[data-ask]")) {
    place.addEventListener("click", (event) => {
      if (!event.target.closest("a.button")) return;
      event.preventDefault();
      const wait = document.createElement("p");
      wait.setAttribute("role", "status");
      wait.textContent = "Working on it…";
      place.replaceChildren(wait);
      fill(place, place.dataset.ask);
    });
  }
}

function follow(place) {
  const parts = [...document.querySelectorAll("[data-part]")];
  const source = new EventSource(place.dataset.live);
  let busy = false, again = false;
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const before = document.querySelector("[data-decision]").dataset.decision;
      await Promise.all(parts.map((part) => fill(part, part.dataset.part)));
      if (document.querySelector("[data-decision]")?.dataset.decision !== before) {
        document.querySelectorAll("[data-load]").forEach((part) => fill(part, part.dataset.load));
      }
      await new Promise((done) => setTimeout(done, 1000)); // a log that grows all the time is shown once a second
    } while (again);
    busy = false;
  }
  source.addEventListener("changed", refresh);
}

prepare(document);
document.querySelectorAll("[data-live]").forEach(follow);
