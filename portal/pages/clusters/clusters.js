// Keeps the progress of a run fresh, the queue of drift, and the selection of the list of clusters.
// The pages work without it.

import { offerSelection } from "../../frontend/js/selection.js";
import { offerDrift } from "./drift/drift.js";

const PAUSE = 2000;

function follow(place) {
  const look = async () => {
    let text = "";
    try {
      const answer = await fetch(place.dataset.poll, { credentials: "same-origin" });
      if (answer.status === 404) return window.location.reload(); // a watch that found nothing is deleted
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      text = await answer.text();
    } catch {
      setTimeout(look, PAUSE * 5);
      return;
    }
    const state = () => place.querySelector("[data-state]")?.dataset.state;
    place.innerHTML = text; // our own page, escaped by the server
    if (["waiting", "running"].includes(state())) setTimeout(look, PAUSE);
    else window.location.reload();
  };
  setTimeout(look, PAUSE);
}

for (const place of document.querySelectorAll("[data-poll]")) follow(place);
offerDrift();
offerSelection();
