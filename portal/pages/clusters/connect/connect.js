// The wizard that connects a cluster: back to what was pasted, and commands to copy.

import { say } from "../../../frontend/js/toasts.js";

function prepare() {
  for (const button of document.querySelectorAll("[data-copy], [data-back]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    say("Copied");
  }
  if (event.target.closest("[data-back]")) {
    document.getElementById("checks").removeAttribute("data-tested");
    document.querySelector(".wizard-paste textarea")?.focus();
  }
});
// The file's own text is sent again with each test: the tab keeps it, no page shows it.
document.addEventListener("htmx:afterSettle", (event) => {
  prepare();
  if (event.target.id === "checks") event.target.querySelector(".buttons .primary")?.focus();
});
prepare();
