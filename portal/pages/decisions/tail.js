// The live tail asks for newer decisions every few seconds. They wait behind the button "3 new":
// no row moves until somebody asks for them.

const EVERY = 4000;
const MOST = 200; // rows that wait; beyond them the page is loaded anew

export function offerTail() {
  const button = document.querySelector("[data-tail-button]");
  const waiting = document.querySelector("[data-arrivals]");
  const list = document.querySelector(".log[data-rows]");
  const show = document.querySelector("[data-new]");
  if (!button || !waiting || !list || !show) return;
  const status = document.querySelector("[data-tail-status]");
  const arrived = () => [...waiting.querySelectorAll("tbody.arrived")];
  const number = () => arrived().reduce((sum, each) => sum + Number(each.dataset.number), 0);
  let timer;
  const ask = () => {
    const isFull = waiting.querySelectorAll("tr").length >= MOST;
    if (!document.hidden && !isFull) document.getElementById("newer")?.dispatchEvent(new Event("tail"));
  };
  const follow = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(ask, EVERY) : undefined;
    button.setAttribute("aria-pressed", String(on));
    if (on) ask();
  };
  const tell = () => {
    const found = number();
    const isFull = waiting.querySelectorAll("tr").length >= MOST;
    show.hidden = !found;
    show.textContent = `${found.toLocaleString("en")}${isFull ? "+" : ""} new`;
    if (found) status.textContent = `${show.textContent} request${found === 1 ? "" : "s"}`;
  };
  button.hidden = false;
  button.addEventListener("click", () => follow(!timer));
  waiting.addEventListener("htmx:afterSwap", tell);
  show.addEventListener("click", () => {
    if (waiting.querySelectorAll("tr").length >= MOST) {
      location.reload();
      return;
    }
    const bodies = arrived();
    list.querySelector("thead").after(...bodies);
    for (const row of bodies.flatMap((body) => [...body.rows])) row.tabIndex = -1;
    tell();
    // The pressed button is gone: the newest row has the focus.
    const first = list.querySelector("tbody tr");
    first.focus({ preventScroll: true });
    first.scrollIntoView({ block: "nearest" });
  });
}
