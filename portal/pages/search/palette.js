// The command palette: Ctrl+K or the field above each page; arrows choose, Enter goes there.

export function offerPalette() {
  const dialog = document.querySelector("[data-palette]");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const links = () => [...dialog.querySelectorAll("[role=option]")];
  const chosen = () => dialog.querySelector('[aria-selected="true"]');

  const choose = (link) => {
    chosen()?.setAttribute("aria-selected", "false");
    if (!link) return field.removeAttribute("aria-activedescendant");
    link.setAttribute("aria-selected", "true");
    link.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", link.id);
  };
  const move = (step) => {
    const all = links();
    if (all.length) choose(all[(all.indexOf(chosen()) + step + all.length) % all.length]);
  };
  const open = () => {
    if (dialog.open) return;
    dialog.showModal();
    field.select();
    field.dispatchEvent(new Event("opened"));
  };

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    }
  });
  for (const button of document.querySelectorAll("[data-palette-button]")) {
    button.hidden = false;
    button.addEventListener("click", open);
  }
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      move(step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      (chosen() ?? links()[0])?.click();
    }
  });
  dialog.addEventListener("htmx:afterSwap", () => choose(links()[0]));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}
