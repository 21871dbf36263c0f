// Shortcuts of every page: g and a letter, /, ?, and a, Ctrl S, Esc, and keys of rows: j, k, Enter, e, x.

const PLACES = { h: "home", d: "decisions", q: "quotas", p: "policies" };
const TYPING = "input, textarea, select, [contenteditable], .cm-editor";
const PATIENCE = 1200; // milliseconds between g and its letter

const rowsOf = (place) => [...place.querySelectorAll(":scope > tbody > tr:not([data-sides], [data-group]), :scope > li")];
const closest = () => document.activeElement?.closest("[data-rows] > tbody > tr, [data-rows] > li");

// One row of a list can be reached by Tab; j and k reach the others.
function prepare() {
  for (const place of document.querySelectorAll("[data-rows]")) {
    const rows = rowsOf(place);
    if (rows.some((row) => row.tabIndex === 0)) continue;
    rows.forEach((row, i) => (row.tabIndex = i ? -1 : 0));
  }
}

function focusRow(row) {
  const place = row.closest("[data-rows]");
  for (const each of rowsOf(place)) each.tabIndex = each === row ? 0 : -1;
  row.focus();
  row.scrollIntoView({ block: "nearest" });
  // A panel that shows a row follows to the next one.
  if (document.querySelector("[data-panel]") && "follow" in place.dataset) row.querySelector("[data-open]")?.click();
}

function move(step) {
  const now = closest();
  const place = now?.closest("[data-rows]") ?? document.querySelector("main [data-rows]");
  if (!place) return false;
  const rows = rowsOf(place);
  const to = now ? rows[rows.indexOf(now) + step] : rows[0];
  if (to) focusRow(to);
  return true;
}

const press = (row, selector) => {
  const part = row?.querySelector(selector);
  part?.click();
  return Boolean(part);
};

function closePanel() {
  const close = document.querySelector("[data-panel] [data-close]");
  if (!close) return false;
  close.click();
  return true;
}

function find() {
  const field = document.querySelector("[data-find], main [role=search] input:not([type=hidden])");
  field?.focus();
  field?.select?.();
  return Boolean(field);
}

function go(letter) {
  const key = PLACES[letter];
  const link = key && document.querySelector(`[data-nav="${key}"]`);
  if (link) location.assign(link.href);
  return Boolean(link);
}

function ofRow(event) {
  const row = closest();
  if (event.key === "Enter") return event.target === row && press(row, "[data-open]");
  if (event.key === "e") return press(row, "[data-edit]");
  if (event.key === "x") return press(row, "input[type=checkbox]");
  return false;
}

function single(event, sheet) {
  switch (event.key) {
    case "/":
      return find();
    case "?":
      sheet?.showModal();
      return Boolean(sheet);
    case "j":
      return move(1);
    case "k":
      return move(-1);
    case "a":
      return press(document.querySelector("main"), "[data-approve]");
    default:
      return ofRow(event);
  }
}

function offerSheet(sheet) {
  for (const button of document.querySelectorAll("[data-shortcuts]")) {
    button.hidden = false;
    button.addEventListener("click", () => sheet.showModal());
  }
}

export function offerKeys() {
  const sheet = document.querySelector("[data-shortcut-sheet]");
  let began = -Infinity;
  if (sheet) offerSheet(sheet);
  prepare();
  document.addEventListener("htmx:afterSettle", prepare);
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const isTyping = event.target.closest?.(TYPING);
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      const save = document.querySelector("[data-save]:not(:disabled)");
      if (save) event.preventDefault();
      save?.click();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      // A field is left first, so that the keys of the page work again.
      if (isTyping && !event.target.closest(".cm-editor")) event.target.blur();
      else closePanel();
      return;
    }
    if (isTyping) return;
    const isSecond = event.timeStamp - began < PATIENCE;
    began = event.key === "g" && !isSecond ? event.timeStamp : -Infinity;
    if (isSecond ? go(event.key) : single(event, sheet)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const row = event.target.closest("[data-rows] > tbody > tr:not([data-sides], [data-group]), [data-rows] > li");
    if (!row || event.target.closest("a, button, input, label, summary, select") || getSelection().toString()) return;
    press(row, "[data-open]");
  });
}
