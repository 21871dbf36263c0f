// The page of one decision: rows of the trace open, its address is copied, and it leads to the
// decisions beside it in the list that the reader came from.

import { say } from "../../frontend/js/toasts.js";

const LIST = "decisions of the list";

export function rememberList(list) {
  const keep = () => {
    const paths = [...list.querySelectorAll("tbody [data-open]")].map((link) => link.pathname);
    try {
      sessionStorage.setItem(LIST, JSON.stringify(paths));
    } catch {
      // No storage: the page of a decision leads back to the list alone.
    }
  };
  list.addEventListener("click", keep, true);
  list.addEventListener("keydown", keep, true);
}

function offerSteps() {
  const place = document.querySelector("[data-steps]");
  let paths = [];
  try {
    paths = JSON.parse(sessionStorage.getItem(LIST)) ?? [];
  } catch {
    return;
  }
  const here = paths.indexOf(location.pathname);
  if (!place || here < 0) return;
  for (const link of place.querySelectorAll("[data-step]")) {
    const path = paths[here + Number(link.dataset.step)];
    if (path) link.href = path + location.search;
    else link.hidden = true;
  }
  place.querySelector("[data-place]").textContent = `${here + 1} of ${paths.length} in the list`;
  place.hidden = false;
}

function offerRows() {
  const toggle = (body) => {
    const isOpen = body.classList.toggle("is-open");
    body.querySelector("[data-toggle]").setAttribute("aria-expanded", isOpen);
  };
  for (const body of document.querySelectorAll("[data-step-row]")) {
    body.querySelector("[data-toggle]").hidden = false;
    body.rows[0].addEventListener("click", (event) => {
      if (!event.target.closest("a")) toggle(body);
    });
  }
}

function offerLink() {
  const button = document.querySelector("[data-copy-link]");
  if (!button || !navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.origin + location.pathname);
    say("The link is copied");
  });
}

export function offerReasons() {
  offerSteps();
  offerRows();
  offerLink();
}
