// The list of people: when its panel closes, the focus returns to the row that it showed. The link
// of an invitation can be copied.

import { say } from "../../frontend/js/toasts.js";

let shown = document.querySelector("[data-panel][data-who]")?.dataset.who ?? "";

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "people") return;
  const who = document.querySelector("[data-panel][data-who]")?.dataset.who ?? "";
  const isLost = !document.activeElement || document.activeElement === document.body;
  if (isLost) document.getElementById(`row-${who || shown}`)?.focus();
  shown = who || shown;
});

const link = document.querySelector("[data-copy=link]");
if (link && navigator.clipboard) {
  link.hidden = false;
  link.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("link").textContent);
    say("Copied");
  });
}
