// Rows of a list picked by mouse, x and Shift; a bar floats while some are, and a dialog asks.

const bar = document.querySelector("form[data-bulk]");
const sheet = document.getElementById("edit-sheet");
const boxes = [...document.querySelectorAll("input[name=pick]")];
let last; // the box from which Shift selects

function show() {
  const picked = boxes.filter((box) => box.checked);
  const all = bar.querySelector("[data-all]");
  const matching = bar.querySelector("[data-pick-matching]");
  const head = document.querySelector("[data-pick-all]");
  const words = bar.querySelector("[data-picked]");
  if (picked.length < boxes.length) all.value = "";
  const number = all.value ? Number(words.dataset.total) : picked.length;
  for (const box of boxes) {
    const row = box.closest("tr");
    if (box.checked) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
  }
  head.checked = picked.length === boxes.length;
  head.indeterminate = picked.length > 0 && !head.checked;
  words.textContent = number ? `${number.toLocaleString("en")} selected` : "";
  if (matching) matching.hidden = Boolean(all.value);
  bar.toggleAttribute("data-shown", number > 0);
}

function pickAll(isPicked, { matching = false } = {}) {
  for (const box of boxes) box.checked = isPicked;
  bar.querySelector("[data-all]").value = matching ? "1" : "";
  show();
}

// All between the last picked row and this one become as this one is.
function pickRange(box) {
  const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
  if (from >= 0) for (const each of boxes.slice(from, to + 1)) each.checked = box.checked;
}

function offerPicks() {
  const head = document.querySelector("[data-pick-all]");
  const none = bar.querySelector("[data-pick-none]");
  head.closest("label").hidden = false;
  none.hidden = false;
  head.addEventListener("change", () => pickAll(head.checked));
  none.addEventListener("click", () => pickAll(false));
  bar.querySelector("[data-pick-matching]")?.addEventListener("click", () => pickAll(true, { matching: true }));
  for (const box of boxes) {
    box.addEventListener("click", (event) => {
      if (event.shiftKey) pickRange(box);
      last = box;
      show();
    });
  }
  document.addEventListener("keydown", (event) => {
    const box = event.key === "X" && document.activeElement?.closest("tr")?.querySelector("input[name=pick]");
    if (!box || event.ctrlKey || event.metaKey) return;
    box.checked = true;
    pickRange(box);
    last = box;
    show();
  });
  show();
}

function offerSheet() {
  document.addEventListener("htmx:afterSwap", ({ detail }) => {
    if (detail.target !== sheet) return;
    for (const menu of document.querySelectorAll("details[data-menu][open]")) menu.open = false;
    sheet.showModal();
  });
  sheet.addEventListener("click", (event) => {
    if (!event.target.closest("[data-close-sheet]")) return;
    event.preventDefault();
    sheet.close();
  });
}

export function offerSelection() {
  if (!bar || !boxes.length) return;
  offerPicks();
  offerSheet();
}
