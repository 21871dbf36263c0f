// The list of policies: rows are picked, and n begins a new policy.

import { offerSelection } from "../../frontend/js/selection.js";

offerSelection();

document.addEventListener("keydown", (event) => {
  if (event.key !== "n" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, dialog")) return;
  document.querySelector("[data-new]")?.click();
});
