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
  let next = Infinity;
  // From the newest on: of several in one place its name is shown.
  for (let i = links.length - 1; i >= 0; i--) {
    const isLast = at[i] + wide[i] > width;
    const [from, to] = isLast ? [at[i] - wide[i], at[i]] : [at[i], at[i] + wide[i]];
    const hides = isLast && i > 0 && at[i - 1] + GAP > from;
    const fits = from >= 0 && to + GAP <= next && !hides;
    links[i].classList.toggle("bare", !fits);
    links[i].classList.toggle("to-left", isLast && fits);
    links[i].style.left = `${left + (isLast && fits ? from : at[i])}px`;
    if (fits) next = from;
    else next = Math.min(next, at[i]);
  }
}
