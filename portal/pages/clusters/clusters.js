// Pages about clusters work without this file. It keeps a run's progress fresh, and asks before
// something is written.
"use strict";

const PAUSE = 2000;

function follow(place) {
  const look = async () => {
    let text = "";
    try {
      const answer = await fetch(place.dataset.poll, { credentials: "same-origin" });
      if (answer.status === 404) return window.location.reload(); // a watch that saw nothing
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

function ask(question, label, go) {
  const dialog = document.createElement("dialog");
  const words = document.createElement("p");
  const row = document.createElement("div");
  const [back, yes] = ["Go back", label].map((text) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    row.append(button);
    return button;
  });
  words.id = "question";
  words.textContent = question;
  row.className = "row";
  yes.className = "primary";
  dialog.setAttribute("aria-labelledby", words.id);
  dialog.append(words, row);
  back.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => {
    dialog.close();
    go();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

for (const place of document.querySelectorAll("[data-poll]")) follow(place);

document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter;
  const question = button?.dataset.confirm || form.dataset.confirm;
  if (!question || form.dataset.sure) return;
  event.preventDefault();
  ask(question, button?.textContent || "Yes", () => {
    form.dataset.sure = "yes";
    form.requestSubmit(button);
  });
});
