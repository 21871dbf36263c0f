// Menus are details elements: Esc and a click elsewhere close them, arrows move within them.

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
