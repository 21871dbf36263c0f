// Quotas: the panel beside the board, limits edited in it, and the undo of a save.

import { say } from "../../frontend/js/toasts.js";

const PANEL = "quota-panel";
const place = document.getElementById(PANEL);
const narrow = matchMedia("(max-width: 820px)");
const NUMBER = /^(\d+)([A-Za-z]*)$/;

const panel = () => place?.querySelector("[data-panel]");
const rowOf = (key) => [...document.querySelectorAll(".quota-rows > tbody > tr")].find((row) => row.dataset.key === key);

// The address says which quota is open, so that it can be sent to somebody.
function note(key) {
  const address = new URL(location.href);
  if (key) address.searchParams.set("open", key);
  else address.searchParams.delete("open");
  history.replaceState(history.state, "", address);
}

function mark() {
  const key = panel()?.dataset.key;
  for (const row of document.querySelectorAll(".quota-rows > tbody > tr")) {
    if (row.dataset.key === key) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
  }
}

function close() {
  const row = rowOf(panel()?.dataset.key);
  place.replaceChildren();
  note("");
  mark();
  row?.focus();
}

const fields = (form) => [...form.querySelectorAll("[data-stored]")];

function colour(form) {
  for (const field of fields(form)) field.classList.toggle("changed-field", field.value.trim() !== field.dataset.stored);
  const reset = form.querySelector("[data-reset]");
  if (reset) reset.hidden = !form.querySelector(".changed-field");
}

// By one, or by about a tenth: 500m goes to 510m, 20Gi to 21Gi.
function step(field, direction) {
  const match = NUMBER.exec(field.value.trim());
  if (!match) return;
  const number = Number(match[1]);
  const by = 10 ** Math.max(0, Math.floor(Math.log10(number || 1)) - 1);
  field.value = `${Math.max(0, number + direction * by)}${match[2]}`;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
}

function prepare(form) {
  for (const button of form.querySelectorAll("[data-step]")) button.hidden = false;
  colour(form);
  if (!("focus" in form.dataset)) return;
  const first = form.querySelector(".changed-field") ?? fields(form)[0];
  first?.focus();
  first?.select();
}

function opened() {
  const shown = panel();
  if (!shown) return;
  note(shown.dataset.key);
  mark();
  shown.querySelectorAll("[data-limits]").forEach(prepare);
  const wrong = shown.querySelector("[aria-invalid=true]") ?? shown.querySelector("#confirm");
  wrong?.focus();
}

async function undo({ address, fields: values }) {
  const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value ?? "";
  const body = new URLSearchParams({ ...values, csrfmiddlewaretoken: token });
  const answer = await fetch(address, { method: "POST", body, credentials: "same-origin" }).catch(() => null);
  if (!answer?.redirected) {
    say("It could not be undone: somebody changed this quota meanwhile.", { level: "error" });
    return;
  }
  document.body.dispatchEvent(new Event("quota-undone"));
  rowOf(panel()?.dataset.key)?.querySelector("[data-open]")?.click();
  say("The limits are as they were.");
}

if (place) {
  place.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === place) opened();
  });
  document.addEventListener("htmx:afterSettle", mark);
  // On a phone the panel is a page.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const link = event.detail.elt.closest("a[href]");
    if (!narrow.matches || event.detail.target !== place || !link) return;
    event.preventDefault();
    location.assign(link.href);
  });
  document.body.addEventListener("quota-saved", ({ detail }) => {
    say(detail.words, { undo: () => undo(detail.undo) });
  });
  place.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close]")) return;
    event.preventDefault();
    close();
  });
  if (panel()) mark();
}

// An answer to limits that were typed names what saving them does. Once the panel is closed or
// replaced, its event reaches nobody.
document.addEventListener("htmx:afterSwap", ({ target }) => {
  const label = target.querySelector("[data-label]");
  if (label) target.closest("[data-limits]")?.querySelector("[data-save]").replaceChildren(label.value);
});
document.addEventListener("input", (event) => {
  const form = event.target.closest("[data-limits]");
  if (form) colour(form);
});
document.addEventListener("click", (event) => {
  const form = event.target.closest("[data-limits]");
  const stepper = event.target.closest("[data-step]");
  if (stepper) step(stepper.parentElement.querySelector("input"), Number(stepper.dataset.step));
  if (!form || !event.target.closest("[data-reset]")) return;
  for (const field of fields(form)) field.value = field.dataset.stored;
  fields(form)[0]?.dispatchEvent(new Event("input", { bubbles: true }));
});
const bulk = document.getElementById("raise-many");
document.addEventListener("change", (event) => {
  if (!bulk || !event.target.matches(".pick")) return;
  const number = document.querySelectorAll(".pick:checked").length;
  bulk.querySelector("[data-chosen]").textContent = `Raise ${number} ${number === 1 ? "quota" : "quotas"}`;
});
for (const form of document.querySelectorAll("[data-submits]")) {
  const filters = form.querySelector("[data-narrow]");
  if (filters) filters.hidden = false;
  filters?.addEventListener("click", () => {
    filters.setAttribute("aria-expanded", String(form.toggleAttribute("data-shown")));
  });
  for (const button of form.querySelectorAll(".only-plain")) button.hidden = true;
  form.addEventListener("change", (event) => {
    if (event.target.matches("select")) form.requestSubmit();
  });
}
document.querySelectorAll("[data-limits]").forEach(prepare);
