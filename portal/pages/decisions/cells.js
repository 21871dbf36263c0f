// Filter for, filter out: two links on the cell under the pointer, and in the panel for keyboards.
// A row has its values as data; each is called as the class of the cell that shows it.

const FIELDS = { place: "namespace", name: "name", verdict: "verdict", reason: "reason", user: "user", operation: "operation", cluster: "cluster" };
const CELLS = ".log tbody td, .log tbody .place";
const quoted = (text) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`;

function address(field, value, isExcluded) {
  const query = new URLSearchParams(location.search);
  for (const name of ["before", "after", "line", "q"]) query.delete(name);
  if (isExcluded) query.set("exclude", `${query.get("exclude") ?? ""} ${field}:${quoted(value)}`.trim());
  else query.set(field, value);
  return `${location.pathname}?${query}`;
}

function pairOf(field, value) {
  const pair = document.createElement("span");
  pair.className = "cell-filters";
  for (const [sign, words, isExcluded] of [["=", "Filter for", false], ["≠", "Filter out", true]]) {
    const link = document.createElement("a");
    link.className = "button small icon-only";
    link.href = address(field, value, isExcluded);
    link.textContent = sign;
    link.dataset.tip = `${words} ${field} ${value}`;
    link.setAttribute("aria-label", link.dataset.tip);
    pair.append(link);
  }
  return pair;
}

const nameIn = (cell, row) => [...cell.classList].find((name) => name in FIELDS && row.dataset[name]);

// One pair floats over the cell under the pointer: rows get neither elements nor tab stops.
export function offerCells(list) {
  if (!list || !matchMedia("(hover: hover)").matches) return;
  let [pair, shown] = [null, null];
  const hide = () => {
    pair?.remove();
    [pair, shown] = [null, null];
  };
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch" || pair?.contains(target)) return;
    const cell = target.closest?.(CELLS);
    if (cell === shown) return;
    hide();
    const row = cell?.closest("tr");
    const name = row && nameIn(cell, row);
    if (!name) return;
    shown = cell;
    pair = pairOf(FIELDS[name], row.dataset[name]);
    pair.classList.add("floating");
    for (const link of pair.children) link.tabIndex = -1;
    list.after(pair);
    const at = cell.getBoundingClientRect();
    const { width, height } = pair.getBoundingClientRect();
    const end = name === "place" ? at.right + width : at.right;
    pair.style.left = `${Math.min(end, innerWidth - 4) - width}px`;
    pair.style.top = `${at.top + (at.height - height) / 2}px`;
  });
  // Whatever is pressed may move the rows below the pointer.
  for (const name of ["click", "keydown", "scroll"]) {
    addEventListener(name, ({ target }) => pair?.contains(target) || hide(), { passive: true });
  }
}

// The same for each value of the row that the panel shows.
export function addFilters(panel, row) {
  const [section, title, list] = ["section", "h3", "ul"].map((name) => document.createElement(name));
  section.className = "panel-filters";
  title.textContent = "Filter";
  for (const [name, field] of Object.entries(FIELDS)) {
    const value = row.dataset[name];
    if (!value) continue;
    const [line, word, text] = ["li", "span", "span"].map((tag) => document.createElement(tag));
    word.textContent = field;
    text.textContent = value;
    text.className = "clip";
    line.append(word, text, pairOf(field, value));
    list.append(line);
  }
  section.append(title, list);
  panel.querySelector(".inside").append(section);
}
