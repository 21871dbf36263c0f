// Unified or split differences: the reader's choice, kept by the browser.

import { own, recall, remember } from "../../../frontend/js/memory.js";

const NAME = "diff-look";

export function offerLooks(editor) {
  const press = () => {
    for (const button of editor.querySelectorAll("[data-diff-look]")) {
      button.setAttribute("aria-pressed", String(button.dataset.diffLook === editor.dataset.diff));
    }
  };
  editor.dataset.diff = recall(own(NAME)) === "split" ? "split" : "unified";
  press();
  editor.addEventListener("click", (event) => {
    const button = event.target.closest("[data-diff-look]");
    if (!button) return;
    editor.dataset.diff = button.dataset.diffLook;
    remember(own(NAME), editor.dataset.diff);
    press();
  });
  // The differences are fetched anew after each change.
  document.body.addEventListener("htmx:afterSettle", press);
}
