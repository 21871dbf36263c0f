// The tabs beside the form: without scripts all views stand below each other.

import { say } from "../../../frontend/js/toasts.js";

const NARROW = matchMedia("(max-width: 1100px)");

function offerYaml(bar, text) {
  bar.hidden = false;
  bar.querySelector("[data-copy]").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      say("Copied the YAML");
    } catch {
      say("The browser does not allow to copy: select the text instead", { level: "warning" });
    }
  });
  const download = bar.querySelector("[data-download]");
  download.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text()], { type: "application/yaml" }));
    link.download = download.dataset.download;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

export function offerTabs(editor, text) {
  const bar = editor.querySelector("[data-tabs]");
  const links = [...bar.querySelectorAll("[data-tab]")];
  const actions = bar.querySelector("[data-yaml-actions]");
  const known = (name) => links.some((link) => link.dataset.tab === name);
  const pane = (name) => editor.querySelector(`#pane-${name}`);
  let shown = "";

  // What takes long to find out is fetched only where it is looked at.
  const refresh = () => {
    if (shown === "impact") editor.querySelector("#restarts")?.dispatchEvent(new Event("look"));
  };

  const show = (wanted) => {
    const name = wanted === "form" && !NARROW.matches ? "yaml" : wanted;
    shown = name;
    editor.dataset.shown = name;
    for (const link of links) {
      if (link.dataset.tab === name) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (link.dataset.tab !== "form") pane(link.dataset.tab).hidden = link.dataset.tab !== name;
    }
    actions.hidden = name !== "yaml";
  };

  bar.addEventListener("click", (event) => {
    const link = event.target.closest("[data-tab]");
    if (!link) return;
    event.preventDefault();
    show(link.dataset.tab);
    refresh();
    history.replaceState(null, "", link.hash);
  });
  NARROW.addEventListener("change", () => {
    if (NARROW.matches || shown === "form") show("form");
  });
  offerYaml(actions, text);
  const asked = location.hash.replace("#pane-", "");
  show(known(asked) ? asked : "form");
  // An answer of the server has the result already.
  if (!editor.querySelector(".impact-figures")) refresh();

  return {
    refresh,
    // In a wide window the form is always in sight.
    show: (name) => (name !== "form" || NARROW.matches) && show(name),
  };
}
