// Pages of decisions: terms of the query, filters of cells, copy buttons, selecting a time in the plot, the sheet of filters, the panel,
// the live tail and the page of one decision. All optional.

import { offerCells } from "./cells.js";
import { offerPanel } from "./panel.js";
import { offerTail } from "./tail.js";
import { offerTerms } from "./terms.js";
import { offerReasons, rememberList } from "./why.js";

const announce = (text) => {
  const place = document.querySelector("[data-copied]");
  if (place) place.textContent = text;
};

function offerCopies(place) {
  if (!navigator.clipboard) return;
  for (const button of place.querySelectorAll("[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    if (!source) continue;
    const words = button.innerHTML;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        if (!("quiet" in button.dataset)) button.textContent = "Copied";
        announce("Copied");
      } catch {
        getSelection().selectAllChildren(source);
        announce("Selected: copy it with the keyboard");
      }
      setTimeout(() => {
        button.innerHTML = words;
        announce("");
      }, 2000);
    });
  }
}

// A time selected in the plot becomes part of the query; the rest of it stays.

const minute = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16);

document.addEventListener("brush", ({ detail }) => {
  const query = new URLSearchParams(location.search);
  for (const name of ["before", "after", "line", "last", "q"]) query.delete(name);
  query.set("since", minute(detail.from));
  query.set("until", minute(Math.max(detail.to, detail.from + 60) + 59));
  location.search = query.toString();
});

offerCopies(document);
offerPanel(offerCopies);
offerTail();
offerTerms(document.querySelector("[data-terms]"));
offerReasons();
const log = document.querySelector(".log[data-rows]");
if (log) rememberList(log);
offerCells(log);
