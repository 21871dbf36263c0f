// The command palette: Ctrl+K or the field above each page; arrows choose, Enter goes there.
// Before anything is typed, it offers the pages that the reader opened last.

import { icon } from "../../frontend/js/icons.js";
import { own, recall, remember } from "../../frontend/js/memory.js";
import { optionsOf } from "../../frontend/js/options.js";

const KEPT = 6;
const NAME = "recent";
const OF_AN_OBJECT = /^\/(clusters\/(?!-\/)|decisions\/[0-9a-z]{16}$|quotas\/.|namespace-classes\/(?!-\/).)/;

function recents() {
  try {
    const found = JSON.parse(recall(own(NAME)) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function keep() {
  const address = location.pathname;
  if (!OF_AN_OBJECT.test(address)) return;
  const name = document.title.replace(/ · Gatehouse$/, "");
  const others = recents().filter((each) => each.address !== address);
  remember(own(NAME), JSON.stringify([{ name, address }, ...others].slice(0, KEPT)));
}

// The same lines as the server's, built from texts: what is remembered is never read as markup.
function recentGroup() {
  const group = document.createElement("div");
  const title = document.createElement("span");
  title.id = "group-recent";
  title.textContent = "Opened last";
  group.setAttribute("role", "group");
  group.setAttribute("aria-labelledby", title.id);
  group.append(title);
  recents().filter(({ address }) => OF_AN_OBJECT.test(address)).forEach(({ name, address }, i) => {
    const link = document.createElement("a");
    const words = document.createElement("span");
    link.id = `recent-${i}`;
    link.href = address;
    link.tabIndex = -1;
    link.setAttribute("role", "option");
    link.setAttribute("aria-selected", "false");
    words.textContent = String(name);
    link.append(icon("history"), words);
    group.append(link);
  });
  return group.children.length > 1 ? [group] : [];
}

export function offerPalette() {
  const dialog = document.querySelector("[data-palette]");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const { all: links, chosen, choose, move } = optionsOf(field, dialog);
  const open = () => {
    if (dialog.open) return;
    dialog.showModal();
    field.select();
    field.dispatchEvent(new Event("opened"));
  };
  const go = (inNewTab) => {
    const link = chosen() ?? links()[0];
    if (inNewTab && link) globalThis.open(link.href, "_blank", "noopener");
    else link?.click();
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
    } else if (event.key === "Escape") {
      event.preventDefault(); // it would only empty the field
      dialog.close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(event.ctrlKey || event.metaKey);
    }
  });
  dialog.addEventListener("htmx:afterSwap", () => {
    if (!field.value.trim()) dialog.querySelector("#palette-found").prepend(...recentGroup());
    choose(links()[0]);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  keep();
}
