// The quota board: a cell opens its history in a drawer; usage over time as lines.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { token } from "../../frontend/js/colours.js";

const HEIGHT = 180;
const TOKENS = ["--slate-fill", "--red-fill", "--teal-fill", "--amber", "--green", "--text-3"];
const DASHES = [[], [8, 4], [2, 3], [12, 4, 2, 4], [6, 2], [1, 4]];
const drawn = new Map();
const date = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC",
});

function draw(place) {
  const { times, series } = JSON.parse(place.dataset.lines);
  const [muted, line] = [token("--text-3"), token("--line")];
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const options = {
    width: place.clientWidth - 24,
    height: HEIGHT,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    scales: { y: { range: (_, __, most) => [0, Math.max(most, 100) * 1.05] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 110, // a date with its time, and room beside it
        values: (_, moments) => moments.map((seconds) => date.format(new Date(seconds * 1000))),
      },
      { ...axis, size: 56, values: (_, values) => values.map((value) => `${value} %`) },
    ],
    series: [
      {
        label: "Time",
        value: (_, seconds) => (seconds === null ? "–" : `${date.format(new Date(seconds * 1000))} UTC`),
      },
      ...series.map(({ label }, i) => ({
        label,
        stroke: token(TOKENS[i % TOKENS.length]),
        dash: DASHES[i % DASHES.length],
        width: 2,
        value: (_, value) => (value === null ? "–" : `${value} %`),
        paths: uPlot.paths.stepped({ align: 1 }),
        points: { show: false },
      })),
    ],
    cursor: { drag: { x: false, y: false } },
  };
  place.replaceChildren();
  drawn.set(place, new uPlot(options, [times, ...series.map(({ values }) => values)], place));
}

function drawAll() {
  for (const place of drawn.keys()) if (!place.isConnected) drawn.delete(place);
  for (const place of document.querySelectorAll("[data-lines]")) {
    if (place.clientWidth) draw(place);
  }
}

const drawer = document.querySelector("[data-drawer]");
if (drawer) {
  let opener = null;
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.closest(".board")) opener = event.target;
  });
  drawer.addEventListener("htmx:afterSwap", () => {
    if (!drawer.open) drawer.showModal();
    drawAll();
  });
  drawer.addEventListener("close", () => opener?.focus());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
}

addEventListener("resize", () => {
  for (const [place, plot] of drawn) plot.setSize({ width: place.clientWidth - 24, height: HEIGHT });
});
document.addEventListener("theme", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
