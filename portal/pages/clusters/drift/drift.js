// The queue of drift: rows that open to both sides, selection, settlements in a dialog.
// Without scripts rows are links to the object's page, and settlements are a page.

const LATE = 200;

async function part(address, target) {
  const answer = await fetch(address, { credentials: "same-origin", headers: { "HX-Target": target } });
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  return answer.text();
}

async function unfold(link) {
  const row = link.closest("tr");
  const isOpen = link.getAttribute("aria-expanded") === "true";
  link.setAttribute("aria-expanded", String(!isOpen));
  const open = row.nextElementSibling;
  if (open?.matches("[data-sides]")) {
    open.hidden = isOpen;
    return;
  }
  const below = document.createElement("tr");
  const cell = below.insertCell();
  below.dataset.sides = "";
  cell.colSpan = row.cells.length;
  const wait = setTimeout(() => (cell.textContent = "Loading…"), LATE);
  row.after(below);
  try {
    cell.innerHTML = await part(link.dataset.unfold, "sides"); // our own page, escaped by the server
  } catch {
    location.assign(link.href);
  } finally {
    clearTimeout(wait);
  }
}

function show(text, from) {
  const dialog = document.createElement("dialog");
  dialog.className = "settling";
  dialog.innerHTML = text; // our own page, escaped by the server
  dialog.setAttribute("aria-labelledby", "settle-title");
  dialog.querySelector("[data-back]")?.addEventListener("click", (event) => {
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    from?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("[name=reason]")?.focus();
}

async function settle(address, from) {
  try {
    show(await part(address, "settle"), from);
  } catch {
    location.assign(address);
  }
}

function count(form) {
  const picks = [...form.querySelectorAll("input[name=object]")];
  const number = picks.filter((pick) => pick.checked).length;
  for (const pick of picks) pick.closest("tr").toggleAttribute("data-picked-row", pick.checked);
  for (const bar of form.querySelectorAll("[data-bulk]")) {
    bar.hidden = !number;
    const words = bar.querySelector("[data-picked]");
    words.hidden = false;
    words.textContent = `${number} selected`;
  }
  const all = form.querySelector("[data-pick-all]");
  if (!all) return;
  all.hidden = !picks.length;
  all.checked = number > 0 && number === picks.length;
  all.indeterminate = number > 0 && number < picks.length;
}

function offerPicks(form) {
  let last = null;
  form.addEventListener("click", (event) => {
    const pick = event.target.closest("input[name=object]");
    if (!pick) return;
    const picks = [...form.querySelectorAll("input[name=object]")];
    if (event.shiftKey && last) {
      const [from, to] = [picks.indexOf(last), picks.indexOf(pick)].sort((a, b) => a - b);
      for (const each of picks.slice(from, to + 1)) each.checked = pick.checked;
    }
    last = pick;
  });
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) {
      for (const pick of form.querySelectorAll("input[name=object]")) pick.checked = event.target.checked;
    }
    count(form);
  });
  count(form);
}

export function offerDrift() {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const link = event.target.closest("a[data-unfold], a[data-settle]");
    if (!link) return;
    event.preventDefault();
    if ("unfold" in link.dataset) unfold(link);
    else {
      const menu = link.closest("details[data-menu]");
      if (menu) menu.open = false;
      settle(link.href, menu?.querySelector("summary") ?? link);
    }
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-settle]")) return;
    event.preventDefault();
    const asked = new URLSearchParams(new FormData(form, event.submitter));
    settle(`${form.action}?${asked}`, event.submitter);
  });
  for (const form of document.querySelectorAll("form:has([name=object])")) offerPicks(form);
}
