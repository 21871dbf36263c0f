// Waiting: a pressed button shows it, and what is loaded anew gives way after 200 ms.

const LATE = 200;

export function offerWaits() {
  const timers = new WeakMap();
  const end = (target) => {
    clearTimeout(timers.get(target));
    target?.classList?.remove("is-late");
  };
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (event.defaultPrevented || !button || button.closest("dialog")) return;
    // After the form is sent: a disabled button would send no value.
    setTimeout(() => !event.defaultPrevented && button.setAttribute("aria-busy", "true"));
  });
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button[aria-busy]")) button.removeAttribute("aria-busy");
  });
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    const target = detail.target;
    if (!target?.matches?.("[data-skeleton]")) return;
    timers.set(target, setTimeout(() => target.classList.add("is-late"), LATE));
  });
  for (const name of ["htmx:afterRequest", "htmx:sendAbort"]) {
    document.addEventListener(name, ({ detail }) => end(detail.target));
  }
  // htmx sends its forms without leaving the page: their buttons are ready again.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    for (const button of detail.elt?.querySelectorAll?.("button[aria-busy]") ?? []) button.removeAttribute("aria-busy");
  });
}
