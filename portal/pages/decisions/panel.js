// The panel beside the log: a click or Enter opens it, j and k move it on, Esc closes it.
// Enter on the row that it shows opens the whole page. On a phone rows lead to the page at once.

import { say } from "../../frontend/js/toasts.js";
import { addFilters } from "./cells.js";

const PHONE = matchMedia("(max-width: 820px)");

export function offerPanel(prepareCopies) {
  const list = document.querySelector(".log[data-rows]");
  const page = document.querySelector(".log-page");
  const status = document.querySelector("[data-panel-status]");
  const empty = document.getElementById("panel");
  if (!list || !empty) return;
  const open = () => document.querySelector("#panel[data-panel]");
  const linkOf = (row) => row.querySelector("[data-open]");
  let shown = null;

  const mark = (row) => {
    shown?.removeAttribute("aria-selected");
    shown = row;
    for (const each of list.querySelectorAll("tbody tr")) each.tabIndex = each === row ? 0 : -1;
    row.setAttribute("aria-selected", "true");
  };
  const show = (row) => {
    mark(row);
    linkOf(row).dispatchEvent(new Event("open"));
  };
  // It ends where the window ends, wherever the page is scrolled to. The list has the value:
  // htmx would copy a style of the panel to the next one, which the policy forbids.
  const fit = () => {
    if (!open()) return;
    const top = document.querySelector(".top")?.offsetHeight ?? 0;
    const place = Math.max(page.getBoundingClientRect().top + page.clientTop, top);
    page.style.setProperty("--panel-height", `${innerHeight - place}px`);
  };
  const close = () => {
    open()?.replaceWith(empty);
    page.classList.remove("with-panel");
    shown?.removeAttribute("aria-selected");
    shown?.focus();
    shown = null;
  };
  const step = (by) => {
    const rows = [...list.querySelectorAll("tbody tr")];
    const row = rows[rows.indexOf(shown) + by];
    if (!row) return;
    show(row);
    row.scrollIntoView({ block: "nearest" });
  };
  // What only the row knows: how many decisions are like this one, and where they are.
  const complete = (panel) => {
    const alike = shown?.querySelector("[data-alike]");
    if (alike) {
      const all = panel.querySelector("[data-all]");
      panel.querySelector("[data-alike-place]").append(alike.cloneNode(true));
      all.href = alike.href;
      all.hidden = false;
    }
    page.classList.add("with-panel");
    prepareCopies(panel);
    if (shown) addFilters(panel, shown);
    fit();
    requestAnimationFrame(fit); // the head may still change its height
    shown?.scrollIntoView({ block: "nearest" });
    status.textContent = panel.querySelector("h2").textContent;
  };

  list.addEventListener("click", (event) => {
    const link = event.target.closest("[data-open]");
    const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || isElsewhere || PHONE.matches) return;
    event.preventDefault();
    const row = link.closest("tr");
    if (row !== shown || !open()) show(row);
  });
  list.addEventListener("keydown", (event) => {
    const row = event.target.closest("tbody tr");
    const isRowOrName = event.target === row || event.target.matches("[data-open]");
    if (event.key !== "Enter" || !row || row !== shown || !open() || !isRowOrName) return;
    event.preventDefault();
    location.assign(linkOf(row).href);
  });
  page.addEventListener("click", (event) => {
    if (event.target.closest("#panel [data-close]")) close();
    if (event.target.closest("#panel [data-next]")) step(1);
    if (event.target.closest("#panel [data-previous]")) step(-1);
  });
  page.addEventListener("keydown", (event) => {
    const by = { j: 1, k: -1 }[event.key];
    if (!by || !event.target.closest("#panel") || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step(by);
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, serverResponse } = event.detail;
    if (target?.id !== "panel") return;
    // Signed out, or gone: the page of the decision says so.
    if (!shown) event.detail.shouldSwap = false;
    else if (!serverResponse.includes("data-panel")) {
      event.detail.shouldSwap = false;
      location.assign(linkOf(shown).href);
    }
  });
  // Not before htmx has settled: until then it sets attributes of the panel itself.
  document.addEventListener("htmx:afterSettle", () => {
    const panel = open();
    if (panel && !("ready" in panel.dataset)) {
      panel.dataset.ready = "";
      complete(panel);
    }
  });
  document.addEventListener("htmx:sendError", ({ detail }) => {
    if (detail.target?.id === "panel") say("The portal does not answer: try again", { level: "error" });
  });
  addEventListener("scroll", fit, { passive: true });
  addEventListener("resize", fit);
}
