// The policy editor: the YAML in CodeMirror; the server keeps it equal to the form.

import { setDiagnostics } from "@codemirror/lint";
import { EditorView } from "@codemirror/view";
import { offerDialogs } from "./workbench/dialogs.js";
import { offerLooks } from "./workbench/looks.js";
import { offerTabs } from "./workbench/tabs.js";
import { yamlEditor } from "./workbench/yaml.js";

const WAIT = 300; // milliseconds after the last key

const form = document.querySelector("[data-editor], [data-plain-editor]");
if (form) edit(form);

// Replaces the text field, which still holds the text that the form sends.
function edit(form) {
  const field = form.querySelector("#yaml");
  const isOfServer = { now: false };
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => form.dispatchEvent(new Event("typed")), WAIT);
  };
  const view = new EditorView({
    doc: field.value,
    extensions: [
      ...yamlEditor(form.dataset.nonce, (update) => {
        field.value = update.state.doc.toString();
        if (!isOfServer.now) later();
      }),
      EditorView.editable.of(!field.readOnly),
    ],
  });
  field.hidden = true;
  field.after(view.dom);
  document.fonts.ready.then(() => view.requestMeasure());
  mark(view, form);
  watchLeaving(form, field);
  // A check during the save would find the policy's own name taken.
  form.addEventListener("submit", () => clearTimeout(timer));
  if (!form.matches("[data-editor]")) return;
  const tabs = offerTabs(form, () => view.state.doc.toString());
  const dialogs = offerDialogs(form);
  offerLooks(form);
  if (form.matches("form")) offerChecks(form, { view, field, isOfServer, later, stop: () => clearTimeout(timer), tabs, dialogs });
}

// The server checks what is typed; its answer is taken over into both sides.
function offerChecks(form, { view, field, isOfServer, later, stop, tabs, dialogs }) {
  form.addEventListener("input", (event) => {
    if (event.target.closest("#sheet, #enforcement, #where, .segments-set")) later();
  });
  // A name that was typed to the end is added at once.
  const addPlace = (event) => event.target.matches("#place") && event.target.value && form.querySelector("[data-add-place]").click();
  form.addEventListener("change", addPlace);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("#place")) return;
    event.preventDefault();
    addPlace(event);
  });
  form.addEventListener("htmx:confirm", stop);
  // A check is no button's action, whichever button has the focus by now.
  form.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt === form) delete event.detail.parameters.do;
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    const answer = document.querySelector("#outcome");
    if (!answer || answer.dataset.isTaken) return;
    answer.dataset.isTaken = "yes";
    take(answer, view, field, isOfServer);
    const wrong = mark(view, form);
    tabs.refresh();
    if ("isAsk" in answer.dataset && !showFirst(form, { tabs, view, wrong })) dialogs.ask();
  });
  dialogs.ask();
}

// Leads to the first problem, in the form or in the YAML; false where there is none.
function showFirst(form, { tabs, view, wrong }) {
  if (!document.querySelector("[data-findings], [data-place-problem]")) return false;
  const cell = form.querySelector("#sheet [aria-invalid]") ?? (document.querySelector("[data-place-problem]") && form.querySelector("#place"));
  tabs.show(cell ? "form" : "yaml");
  (cell ?? form.querySelector(".cm-content")).focus();
  if (!cell && wrong.length) view.dispatch({ selection: { anchor: wrong[0].from }, scrollIntoView: true });
  return true;
}

// Warns before leaving an unsaved draft; the server keeps the draft in any case.
function watchLeaving(form, field) {
  const first = field.value;
  let isSent = false;
  form.addEventListener("submit", () => (isSent = true));
  addEventListener("beforeunload", (event) => {
    if (!isSent && field.value !== first && form.matches("[data-editor]")) event.preventDefault();
  });
}

// Takes over both sides from the server, except for text that was typed meanwhile.
function take(answer, view, field, isOfServer) {
  const text = answer.querySelector("[data-yaml-now]").value;
  const shown = document.querySelector('[name="shown"]');
  if (shown) shown.value = answer.querySelector("[data-shown-now]").value;
  const isTyped = answer.querySelector("[data-is-typed]") && view.hasFocus;
  if (!isTyped && text !== field.value) {
    isOfServer.now = true;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    isOfServer.now = false;
  }
  for (const cell of document.querySelectorAll("#sheet input[placeholder]")) cell.placeholder = cell.dataset.blank ?? "";
  for (const item of answer.querySelectorAll("[data-derived] li")) {
    const cell = document.getElementById(item.dataset.cell);
    if (cell) cell.placeholder = item.textContent;
  }
}

// Cells that differ from the stored policy are blue and say what they were.
function markChanged(form) {
  for (const cell of form.querySelectorAll("#sheet .changed-field")) {
    cell.classList.remove("changed-field");
    cell.removeAttribute("title");
  }
  for (const item of document.querySelectorAll("[data-changed] li")) {
    const cell = document.getElementById(item.dataset.cell);
    if (!cell?.matches("input, select, textarea")) continue;
    cell.classList.add("changed-field");
    cell.title = item.textContent;
  }
}

// Shows findings at their lines and cells; returns those that have a line, the first one first.
function mark(view, form) {
  markChanged(form);
  for (const cell of form.querySelectorAll("#sheet [aria-invalid]")) clear(cell);
  for (const note of form.querySelectorAll("#sheet .wrong")) note.remove();
  const found = [];
  for (const item of document.querySelectorAll("[data-findings][data-line], [data-findings] [data-line]")) {
    const message = item.querySelector("[data-message]").textContent;
    const cell = item.dataset.cell ? document.getElementById(item.dataset.cell) : null;
    if (cell?.matches("input, select, textarea")) show(cell, message);
    const number = Number(item.dataset.line);
    if (!number || number > view.state.doc.lines) continue;
    const line = view.state.doc.line(number);
    const from = Math.min(line.from + Math.max(0, Number(item.dataset.column) - 1), line.to);
    found.push({ from, to: line.to, severity: "error", message });
  }
  found.sort((one, other) => one.from - other.from);
  view.dispatch(setDiagnostics(view.state, found));
  return found;
}

// Shows a problem beside its cell; clear() restores the hint that described the cell before.
function show(cell, message) {
  const id = `${cell.id}-wrong`;
  const known = document.getElementById(id);
  const note = known || document.createElement("p");
  note.textContent = known ? `${known.textContent}; ${message}` : message;
  if (known) return;
  note.id = id;
  note.className = "wrong";
  cell.after(note);
  cell.dataset.hint = cell.getAttribute("aria-describedby") || "";
  cell.setAttribute("aria-invalid", "true");
  cell.setAttribute("aria-describedby", id);
}

function clear(cell) {
  cell.removeAttribute("aria-invalid");
  if (cell.dataset.hint) cell.setAttribute("aria-describedby", cell.dataset.hint);
  else cell.removeAttribute("aria-describedby");
}
