// Home refreshes itself, but not under the hands of whoever reads a table in it or moves by keys.

document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt } = event.detail;
  if (elt.id !== "live") return;
  if (elt.querySelector("details[open]") || elt.contains(document.activeElement)) event.preventDefault();
});
