// Typeahead of the query: terms for the word at the caret. Arrows choose, Tab or Enter take, Esc closes.
// Without this script the field is a plain one.

import { optionsOf } from "../../frontend/js/options.js";

const WAIT = 120; // milliseconds after a letter

// Where the word at the caret begins and ends; within quotes, spaces belong to it.
function wordAt(text, caret) {
  let [from, isQuoted] = [0, false];
  for (let i = 0; i < caret; i++) {
    if (text[i] === '"' && text[i - 1] !== "\\") isQuoted = !isQuoted;
    else if (/\s/.test(text[i]) && !isQuoted) from = i + 1;
  }
  const end = text.slice(caret).search(isQuoted ? /"/ : /\s/);
  return [from, end < 0 ? text.length : caret + end + Number(isQuoted)];
}

function makeBox(field) {
  const box = document.createElement("div");
  box.className = "terms";
  box.id = "query-terms";
  box.hidden = true;
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-label", "Terms");
  field.after(box);
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", box.id], ["aria-autocomplete", "list"]]) {
    field.setAttribute(name, value);
  }
  return box;
}

function optionOf({ text, about, is_open: isOpen }, number) {
  const option = document.createElement("div");
  const [term, words] = [document.createElement("code"), document.createElement("small")];
  option.id = `term-${number}`;
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  option.dataset.term = isOpen ? text : `${text} `;
  term.textContent = text;
  words.textContent = about;
  option.append(term, words);
  return option;
}

export function offerTerms(field) {
  if (!field) return;
  const box = makeBox(field);
  const { all, chosen, choose, move } = optionsOf(field, box);
  const word = () => wordAt(field.value, field.selectionStart);
  let [timer, request] = [0, new AbortController()];
  let place = 0; // where the word begins whose terms are shown

  const close = () => {
    clearTimeout(timer);
    request.abort();
    choose(null);
    box.hidden = true;
    field.setAttribute("aria-expanded", "false");
  };
  const show = (terms) => {
    choose(null);
    box.replaceChildren(...terms.map(optionOf));
    box.hidden = !terms.length;
    box.scrollTop = 0;
    field.setAttribute("aria-expanded", String(terms.length > 0));
  };
  const ask = async () => {
    const [from, to] = word();
    const { value, selectionStart } = field;
    const query = new URLSearchParams({ word: value.slice(from, selectionStart), rest: value.slice(0, from) + value.slice(to) });
    request.abort();
    request = new AbortController();
    try {
      const answer = await fetch(`${field.dataset.terms}?${query}`, { signal: request.signal });
      const terms = answer.ok && !answer.redirected ? (await answer.json()).terms : null;
      if (!terms || word()[0] !== from) return; // the caret has left this word
      place = from;
      show(terms);
    } catch {
      // Newer letters have asked anew, or the portal cannot be reached: the field works without.
    }
  };
  const take = (option) => {
    const [from, to] = word();
    const rest = field.value.slice(to).replace(/^\s+/, "");
    const before = field.value.slice(0, from) + option.dataset.term;
    field.value = before + rest;
    field.setSelectionRange(before.length, before.length);
    close();
    if (!before.endsWith(" ")) ask();
  };
  // What Tab completes: the chosen term, or the first one that the word begins.
  const completion = () => {
    const [from] = word();
    const typed = field.value.slice(from, field.selectionStart);
    const first = all()[0];
    const isBegun = typed && first?.dataset.term.startsWith(typed) && first.dataset.term.trim() !== typed;
    return chosen() ?? (isBegun ? first : null);
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  });
  // Terms of a word that the caret has left would replace the word where it is now.
  document.addEventListener("selectionchange", () => {
    if (box.hidden || word()[0] === place) return;
    close();
    ask();
  });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const isShown = !box.hidden;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const term = { Enter: chosen, Tab: event.shiftKey ? () => null : completion }[event.key];
    if (step && isShown) move(step);
    else if (event.key === "ArrowDown") ask();
    else if (event.key === "Escape" && isShown) close();
    else if (term && isShown && term()) take(term());
    else return;
    event.preventDefault();
  });
  field.addEventListener("blur", close);
  // The field keeps the focus while an option is pressed.
  box.addEventListener("pointerdown", (event) => event.preventDefault());
  box.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(option);
  });
}
