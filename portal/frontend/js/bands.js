// A plot as a band above a list (data-low): two grid lines, no legend, a tooltip for each bar.

const DAY = 86400;
const BAND = 88; // bars, and a line of labels
const FLAGS = 14; // the names of marks, above the bars
const MOST_LABELS = 9;

const hasMarks = (place) => place.parentElement.querySelector("[data-plot-marks]") !== null;
export const bandOf = (place) => (hasMarks(place) ? BAND + 4 : BAND);

// The highest round number that the bars reach, and half of it.
function lines(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const top = [1, 2, 4, 6, 8].map((factor) => factor * power).findLast((each) => each <= most);
  return [top / 2, top];
}

function tooltip() {
  const found = document.querySelector(".tip.chart");
  if (found) return found;
  const made = document.createElement("div");
  made.className = "tip chart";
  made.hidden = true;
  document.body.append(made);
  return made;
}

function entry({ label }, number) {
  const [line, swatch, word, value] = ["div", "span", "dt", "dd"].map((name) => document.createElement(name));
  swatch.className = `swatch ${label.replace(" ", "-")}`;
  word.textContent = label;
  value.textContent = number.toLocaleString("en");
  word.prepend(swatch);
  line.append(word, value);
  return line;
}

const showing = (verdicts, [times, ...columns], name) => (plot) => {
  const { idx, left } = plot.cursor;
  const tip = tooltip();
  tip.hidden = idx === null || idx === undefined || left < 0;
  if (tip.hidden) return;
  const [list, time] = ["dl", "p"].map((tag) => document.createElement(tag));
  list.append(...verdicts.map((verdict, i) => entry(verdict, columns[i][idx])).reverse());
  time.textContent = name(times[idx]);
  tip.replaceChildren(time, list);
  const box = plot.over.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(box.left + left + 12, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${box.bottom + 22}px`;
};

// A click on a bar selects its time, as dragging over it does.
const clicked = (place, [times], step) => (plot) => {
  plot.over.addEventListener("click", () => {
    const from = times[plot.cursor.idx];
    if (from === undefined || plot.select.width >= 4) return;
    place.dispatchEvent(new CustomEvent("brush", { bubbles: true, detail: { from, to: from + step - 60 } }));
  });
};

// The options that make a band of a plot; the others stay.
export function asBand(options, { place, columns, verdicts, step, moment, font }) {
  const most = Math.max(1, ...columns[0].map((_, i) => columns.slice(1).reduce((sum, each) => sum + each[i], 0)));
  const [times, numbers] = options.axes;
  const name = (at) => (step < DAY ? `${moment(at)}, ${step / 60} min` : moment(at));
  return {
    ...options,
    height: bandOf(place),
    padding: [hasMarks(place) ? FLAGS : 6, 28, 0, 0],
    legend: { show: false },
    axes: [
      { ...times, font, size: 18, gap: 2, space: Math.max(64, place.clientWidth / MOST_LABELS) },
      {
        ...numbers,
        font,
        size: 40,
        gap: 4,
        splits: () => lines(most),
        values: (_, [, top]) => ["", top.toLocaleString("en")],
      },
    ],
    hooks: {
      ...options.hooks,
      ready: [clicked(place, columns, step)],
      setCursor: [showing(verdicts, columns, name)],
    },
  };
}
