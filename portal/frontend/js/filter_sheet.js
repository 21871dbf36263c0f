// The facets of narrow windows are a sheet behind the button "Filters": a modal dialog, so that the
// browser keeps the focus in it, closes it on Esc and gives the focus back.

import { icon } from "./icons.js";

const WIDE = matchMedia("(min-width: 1101px)");

function made() {
  const sheet = document.createElement("dialog");
  const head = document.createElement("div");
  const title = document.createElement("h2");
  const close = document.createElement("button");
  sheet.className = "filter-sheet";
  sheet.id = "filter-sheet";
  title.id = "filter-sheet-title";
  title.textContent = "Filters";
  sheet.setAttribute("aria-labelledby", title.id);
  head.className = "with-close";
  close.type = "button";
  close.className = "plain icon-only small";
  close.setAttribute("aria-label", "Close the filters");
  close.append(icon("x"));
  close.addEventListener("click", () => sheet.close());
  head.append(title, close);
  sheet.append(head);
  return sheet;
}

export function offerFilters() {
  const column = document.querySelector(".facet-column");
  const button = document.querySelector("[data-filters]");
  if (!column || !button) return;
  const sheet = made();
  const place = document.createComment("");
  column.before(place);
  document.body.append(sheet);
  button.hidden = false;
  button.addEventListener("click", () => {
    sheet.append(column);
    sheet.showModal();
  });
  // Closed in whatever way: beside the list again, where wide windows show it.
  sheet.addEventListener("close", () => place.after(column));
  sheet.addEventListener("click", (event) => {
    if (event.target === sheet) sheet.close(); // the veil beside it
  });
  WIDE.addEventListener("change", () => {
    if (WIDE.matches) sheet.close();
  });
}
