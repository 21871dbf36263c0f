// The list of people: when its panel closes, the focus returns to the row that it showed.

let shown = document.querySelector("[data-panel][data-who]")?.dataset.who ?? "";

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "people") return;
  const who = document.querySelector("[data-panel][data-who]")?.dataset.who ?? "";
  const isLost = !document.activeElement || document.activeElement === document.body;
  if (isLost) document.getElementById(`row-${who || shown}`)?.focus();
  shown = who || shown;
});
