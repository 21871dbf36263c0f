// The sidebar: narrow or wide, remembered; a drawer on a phone; counts of waiting work.

import { remember } from "./memory.js";

const root = document.documentElement;

function offerSlim(button) {
  const show = () => button.setAttribute("aria-pressed", String(root.dataset.side === "slim"));
  button.addEventListener("click", () => {
    if (root.dataset.side === "slim") delete root.dataset.side;
    else root.dataset.side = "slim";
    remember("side", root.dataset.side ?? "wide");
    show();
    dispatchEvent(new Event("resize")); // charts have another width now
  });
  button.hidden = false;
  show();
}

function offerDrawer(button, side) {
  const page = document.querySelector(".page > main");
  const set = (isOpen) => {
    if (isOpen) root.dataset.drawer = "";
    else delete root.dataset.drawer;
    button.setAttribute("aria-expanded", String(isOpen));
    page.inert = isOpen;
  };
  button.addEventListener("click", () => {
    set(!("drawer" in root.dataset));
    if ("drawer" in root.dataset) side.querySelector("a, summary").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !("drawer" in root.dataset) || event.defaultPrevented) return;
    set(false);
    button.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if ("drawer" in root.dataset && !side.contains(event.target) && !button.contains(event.target)) set(false);
  });
  matchMedia("(min-width: 821px)").addEventListener("change", () => set(false));
  button.hidden = false;
}

async function fillCounts(nav) {
  let counts;
  try {
    const answer = await fetch(nav.dataset.counts, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return;
    counts = await answer.json();
  } catch {
    return; // the navigation works without them
  }
  for (const place of nav.querySelectorAll("[data-count]")) {
    const number = counts[place.dataset.count] ?? 0;
    place.textContent = number ? number.toLocaleString("en") : "";
    place.hidden = !number;
  }
}

export function offerSide() {
  const side = document.getElementById("side");
  if (!side) return;
  const slim = side.querySelector("[data-slim]");
  const drawer = document.querySelector("[data-drawer-button]");
  const nav = side.querySelector("[data-counts]");
  if (slim) offerSlim(slim);
  if (drawer) offerDrawer(drawer, side);
  if (nav) fillCounts(nav);
}
