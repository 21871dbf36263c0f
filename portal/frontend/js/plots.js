// Decisions over time as stacked bars, with the changes of policies marked; colours are tokens.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { asBand, bandOf } from "./bands.js";
import { token } from "./colours.js";
import { placeMarks } from "./marks.js";

const VERDICTS = [
  { label: "allowed", token: "--slate-fill" },
  { label: "mutated", token: "--teal-fill" },
  { label: "would deny", token: "--violet-fill" },
  { label: "denied", token: "--red-fill" },
];
const HEIGHT = 260;
const drawn = new Map();
const heightOf = (place) => ("low" in place.dataset ? bandOf(place) : HEIGHT);

const DAY = 86400;
// Words for times in the zone that the place names, which is the reader's.
function wordsOf({ zone = "UTC", zoneLabel = "UTC" }) {
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone });
  const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: zone });
  const moment = (seconds) => {
    const at = new Date(seconds * 1000);
    return `${date.format(at)} ${clock.format(at)} ${zoneLabel}`;
  };
  const labels = (step) => (_, times) =>
    times.map((seconds) => {
      const at = new Date(seconds * 1000);
      const time = clock.format(at);
      return step < DAY && time !== "00:00" ? time : date.format(at);
    });
  return { moment, labels, zone };
}

// Without a pointer over the plot the legend shows the total of all bars.
const total = (column) => column.reduce((sum, value) => sum + value, 0);

const stacked = ([times, ...columns]) => {
  const sums = times.map(() => 0);
  return [times, ...columns.map((column) => column.map((value, i) => (sums[i] += value)))];
};

const markers = (marks, colour) => (plot) => {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.setLineDash([4, 4]);
  for (const { at } of marks) {
    const x = Math.round(plot.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
};

// Dragging over a plot with data-brush selects a time: an event carries it in whole seconds.
const brushed = (place) => (plot) => {
  const { left, width } = plot.select;
  if (width < 4) return;
  const [from, to] = [left, left + width].map((x) => Math.round(plot.posToVal(x, "x")));
  place.dispatchEvent(new CustomEvent("brush", { bubbles: true, detail: { from, to } }));
};

function draw(place) {
  const { columns, marks } = JSON.parse(place.dataset.plot);
  const [muted, line] = [token("--text-3"), token("--line")];
  const { moment, labels, zone } = wordsOf(place.dataset);
  const step = columns[0].length > 1 ? columns[0][1] - columns[0][0] : 3600;
  // Later series cover earlier ones: the sum of all is drawn first.
  const series = VERDICTS.map(({ label, token: name }, i) => ({
    label,
    fill: token(name),
    width: 0,
    points: { show: false },
    paths: uPlot.paths.bars({ size: [0.7, 40], align: 1 }),
    value: (_, __, ___, index) => (index === null ? total(columns[i + 1]) : columns[i + 1][index]).toLocaleString("en"),
  })).reverse();
  const [times, ...sums] = stacked(columns);
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const options = {
    width: place.clientWidth,
    height: HEIGHT,
    padding: [null, 20, null, null], // for half of the last label
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
    scales: {
      x: { range: () => [times[0], times.at(-1) + step] },
      y: { range: (_, __, most) => [0, Math.max(most, 4) * 1.08] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 64, values: labels(step) },
      { ...axis, size: 56, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6] },
    ],
    series: [{ label: "Time", value: (_, seconds) => (seconds === null ? "all" : moment(seconds)) }, ...series],
    cursor: { drag: { x: "brush" in place.dataset, y: false, setScale: false }, points: { show: false } },
    hooks: { draw: [markers(marks, token("--link")), (plot) => placeMarks(place, plot)], setSelect: [brushed(place)] },
  };
  const { fontFamily } = getComputedStyle(document.body);
  const chosen =
    "low" in place.dataset
      ? asBand(options, { place, columns, verdicts: VERDICTS, step, moment, font: `12px ${fontFamily}` })
      : options;
  place.replaceChildren();
  drawn.set(place, new uPlot(chosen, [times, ...sums.reverse()], place));
}

function drawAll() {
  for (const place of drawn.keys()) if (!place.isConnected) drawn.delete(place);
  for (const place of document.querySelectorAll("[data-plot]")) draw(place);
}

addEventListener("resize", () => {
  for (const [place, plot] of drawn) plot.setSize({ width: place.clientWidth, height: heightOf(place) });
});
document.addEventListener("theme", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
document.addEventListener("htmx:afterSettle", drawAll);
drawAll();
