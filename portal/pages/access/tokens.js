// The list of tokens: all of a page are picked at once, and the bar says how many are.

const all = document.querySelector("[data-pick-all]");
const bar = document.getElementById("revoke-many");
const boxes = [...document.querySelectorAll(".token-rows .pick")];

function show() {
  const number = boxes.filter((box) => box.checked).length;
  const words = `${number} ${number === 1 ? "token" : "tokens"}`;
  for (const box of boxes) {
    const row = box.closest("tr");
    if (box.checked) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
  }
  all.checked = number === boxes.length;
  all.indeterminate = number > 0 && !all.checked;
  bar.querySelector("[data-picked]").textContent = number ? `${words} selected` : "";
  bar.dataset.confirm = `Revoke ${words}? What still sends ${number === 1 ? "it" : "them"} is refused at once.`;
}

if (bar && all) {
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    show();
  });
  for (const box of boxes) box.addEventListener("change", show);
  // The boxes are cleared behind this event.
  bar.addEventListener("reset", () => setTimeout(show));
  show();
}
