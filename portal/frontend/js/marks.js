// The names of a plot's marks: links above their lines. One without room shows a flag alone.

const GAP = 8;

export function placeMarks(place, plot) {
  const list = place.parentElement.querySelector("[data-plot-marks]");
  if (!list) return;
  list.hidden = false;
  const left = plot.over.offsetLeft + place.offsetLeft;
  const width = plot.over.clientWidth;
  const links = [...list.children];
  const at = links.map((link) => Math.round(plot.valToPos(Number(link.dataset.at), "x")));
  // Widths first, then positions: each link has its name while it is measured.
  for (const link of links) link.classList.remove("bare", "to-left");
  const wide = links.map((link) => link.offsetWidth);
  let next = width + GAP;
  // From the newest on: of several in one place its name is shown. A name stands right of its flag,
  // or left where it covers no other flag: the oldest of a crowd always has room there.
  for (let i = links.length - 1; i >= 0; i--) {
    const isRight = at[i] + wide[i] + GAP <= next;
    const from = at[i] - wide[i];
    const isLeft = !isRight && from >= (i > 0 ? at[i - 1] + GAP : 0) && at[i] <= next;
    links[i].classList.toggle("bare", !isRight && !isLeft);
    links[i].classList.toggle("to-left", isLeft);
    links[i].style.left = `${left + (isLeft ? from : at[i])}px`;
    next = Math.min(next, isLeft ? from : at[i]);
  }
}
