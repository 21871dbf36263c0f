// Menus are details elements: Esc and a click elsewhere close them, arrows move within them.
// The facets of narrow windows are a sheet behind the button "Filters".

const open = () => [...document.querySelectorAll("details[data-menu][open]")];
const parts = (menu) => [...menu.querySelectorAll(".menu :is(a, button)")].filter((part) => part.offsetParent);

function close(menu, { focus = false } = {}) {
  menu.open = false;
  if (focus) menu.querySelector("summary").focus();
}

export function offerMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of open()) if (!menu.contains(event.target)) close(menu);
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of open()) if (!menu.contains(event.target)) close(menu);
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.target.closest?.("details[data-menu]");
    if (!menu) return;
    if (event.key === "Escape" && menu.open) {
      event.preventDefault();
      close(menu, { focus: true });
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    menu.open = true;
    const all = parts(menu);
    const at = all.indexOf(document.activeElement);
    all[(at + step + all.length) % all.length]?.focus();
  });
}

export function offerFilters() {
  const column = document.querySelector(".facet-column");
  const button = document.querySelector("[data-filters]");
  if (!column || !button) return;
  const set = (isShown) => {
    column.toggleAttribute("data-shown", isShown);
    button.setAttribute("aria-expanded", String(isShown));
  };
  button.hidden = false;
  button.addEventListener("click", () => set(!column.hasAttribute("data-shown")));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !column.hasAttribute("data-shown")) return;
    set(false);
    button.focus();
  });
}
