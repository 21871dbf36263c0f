// Toasts: what happened, at the bottom left, for six seconds. Errors and warnings stay.

import { icon } from "./icons.js";

const SHOWN = 6000;
const ICONS = { success: "circle-check", info: "info-circle", warning: "alert-triangle", error: "ban" };

// While somebody reads it or is in it, it stays.
function fade(toast) {
  let timer = 0;
  const start = () => (timer = setTimeout(() => toast.remove(), SHOWN));
  const stop = () => clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) toast.addEventListener(name, stop);
  for (const name of ["pointerleave", "focusout"]) toast.addEventListener(name, start);
  start();
}

function prepare(toast) {
  const close = toast.querySelector("[data-dismiss]");
  if (close) {
    close.hidden = false;
    close.addEventListener("click", () => toast.remove());
  }
  if (!toast.matches(".error, .warning")) fade(toast);
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "small";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

// say("Saved compute as revision 15", { undo: () => … }); undo may be an address, too.
export function say(words, { level = "success", undo, undoLabel = "Undo" } = {}) {
  const place = document.querySelector("[data-toasts]");
  if (!place) return undefined;
  const toast = document.createElement("div");
  const text = document.createElement("span");
  const close = button("", () => toast.remove());
  toast.className = `toast ${level}`;
  toast.setAttribute("role", level === "error" ? "alert" : "status");
  text.className = "words";
  text.textContent = words;
  close.className = "plain icon-only small";
  close.setAttribute("aria-label", "Dismiss");
  close.append(icon("x"));
  toast.append(icon(ICONS[level] ?? "info-circle"), text);
  if (undo) {
    const go = typeof undo === "function" ? undo : () => location.assign(undo);
    toast.append(button(undoLabel, () => (toast.remove(), go())));
  }
  toast.append(close);
  place.append(toast);
  if (level !== "error" && level !== "warning") fade(toast);
  return toast;
}

// A button with data-say shows its words; data-level and data-undo are those of say().
function ofButton(event) {
  const { say: words, level, undo } = event.target.closest("[data-say]")?.dataset ?? {};
  if (words) say(words, { level, undo });
}

export function offerToasts() {
  document.addEventListener("click", ofButton);
  for (const toast of document.querySelectorAll("[data-toasts] > .toast")) prepare(toast);
}
