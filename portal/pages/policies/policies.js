// The policy editor: the YAML in CodeMirror, kept the same as the form beside it by the server.

import { EditorView, basicSetup } from "codemirror";
import { yaml } from "@codemirror/lang-yaml";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { MergeView } from "@codemirror/merge";

const WAIT = 300; // milliseconds after the last key
const LABEL = EditorView.contentAttributes.of({ "aria-label": "YAML", spellcheck: "false" });

const form = document.querySelector("[data-editor], [data-merge], [data-plain-editor]");
if (form) (form.matches("[data-merge]") ? merge : edit)(form);

function extensions(nonce, onTyped) {
  return [
    basicSetup,
    yaml(),
    lintGutter(),
    LABEL,
    EditorView.lineWrapping,
    EditorView.cspNonce.of(nonce),
    EditorView.updateListener.of((update) => update.docChanged && onTyped(update)),
  ];
}

// In place of a text field, which goes on holding the text that is sent.
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
      ...extensions(form.dataset.nonce, (update) => {
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
  // Enter in the reason saves, as it reads; in a cell it checks.
  form.addEventListener("keydown", (event) => {
    const save = form.querySelector("[data-save]");
    if (event.key !== "Enter" || event.isComposing || !save) return;
    if (!event.target.matches("#reason, #confirm")) return;
    event.preventDefault();
    form.requestSubmit(save);
  });
  // What is being saved needs no look any more: it would find its own name taken.
  form.addEventListener("submit", () => clearTimeout(timer));
  if (!form.matches("[data-editor]")) return;

  form.addEventListener("input", (event) => {
    if (event.target.closest("#sheet")) later();
  });
  form.addEventListener("htmx:confirm", () => clearTimeout(timer));
  // A look at what was typed presses nothing, whatever button the focus is on by now.
  form.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt === form) delete event.detail.parameters.do;
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    const answer = document.querySelector("#outcome");
    if (!answer || answer.dataset.isTaken) return;
    answer.dataset.isTaken = "yes";
    take(answer, view, field, isOfServer);
    mark(view, form);
  });
}

// Who leaves with something typed is asked first; the server keeps a draft in any case.
function watchLeaving(form, field) {
  const first = field.value;
  let isSent = false;
  form.addEventListener("submit", () => (isSent = true));
  addEventListener("beforeunload", (event) => {
    if (!isSent && field.value !== first && form.matches("[data-editor]")) event.preventDefault();
  });
}

// What the server says the two sides are now; what was typed meanwhile is not written over.
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
  for (const cell of document.querySelectorAll("#sheet input[placeholder]")) cell.placeholder = "";
  for (const item of answer.querySelectorAll("[data-derived] li")) {
    const cell = document.getElementById(item.dataset.cell);
    if (cell) cell.placeholder = item.textContent;
  }
}

// Findings at their lines, and at their cells.
function mark(view, form) {
  for (const cell of form.querySelectorAll("#sheet [aria-invalid]")) clear(cell);
  for (const told of form.querySelectorAll("#sheet .wrong")) told.remove();
  const found = [];
  for (const item of document.querySelectorAll("[data-findings] [data-line]")) {
    const message = item.querySelector("[data-message]").textContent;
    const cell = item.dataset.cell && document.getElementById(item.dataset.cell);
    if (cell) tell(cell, message);
    const number = Number(item.dataset.line);
    if (!number || number > view.state.doc.lines) continue;
    const line = view.state.doc.line(number);
    const from = Math.min(line.from + Math.max(0, Number(item.dataset.column) - 1), line.to);
    found.push({ from, to: line.to, severity: "error", message });
  }
  found.sort((one, other) => one.from - other.from);
  view.dispatch(setDiagnostics(view.state, found));
}

// What is wrong with a cell, in words beside it; a hint that described it before does so again.
function tell(cell, message) {
  const id = `${cell.id}-wrong`;
  const known = document.getElementById(id);
  const told = known || document.createElement("p");
  told.textContent = known ? `${known.textContent}; ${message}` : message;
  if (known) return;
  told.id = id;
  told.className = "wrong";
  cell.after(told);
  cell.dataset.hint = cell.getAttribute("aria-describedby") || "";
  cell.setAttribute("aria-invalid", "true");
  cell.setAttribute("aria-describedby", id);
}

function clear(cell) {
  cell.removeAttribute("aria-invalid");
  if (cell.dataset.hint) cell.setAttribute("aria-describedby", cell.dataset.hint);
  else cell.removeAttribute("aria-describedby");
}

// Theirs on the left, what will be saved on the right.
function merge(form) {
  const field = form.querySelector("#yaml");
  const theirs = form.querySelector('[name="shown"]').value;
  const views = new MergeView({
    a: {
      doc: theirs,
      extensions: [...extensions(form.dataset.nonce, () => {}), EditorView.editable.of(false)],
    },
    b: {
      doc: field.value,
      extensions: extensions(form.dataset.nonce, (update) => {
        field.value = update.state.doc.toString();
      }),
    },
    gutter: true,
  });
  field.hidden = true;
  field.after(views.dom);
}
