// Keeps the progress of work in the background fresh, and loads the page anew once it is over.

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
    if (["waiting", "queued", "running"].includes(state())) setTimeout(look, PAUSE);
    else window.location.reload();
  };
  setTimeout(look, PAUSE);
}

export function followProgress() {
  for (const place of document.querySelectorAll("[data-poll]")) follow(place);
}
