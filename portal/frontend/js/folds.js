// Parts of a page that are folded on a phone, where they would make it long: open elsewhere.

const phone = matchMedia("(max-width: 820px)");

function fit() {
  for (const each of document.querySelectorAll("details[data-fold]")) each.open = !phone.matches;
}

export function offerFolds() {
  fit();
  phone.addEventListener("change", fit);
}
