// Tooltips for data-tip, and for cells whose text is cut off: after 300 ms, also on focus.

const WAIT = 300;

function words(part) {
  if (part.dataset.tip) return part.dataset.tip;
  return part.scrollWidth > part.clientWidth ? part.textContent.trim() : "";
}

function show(part, text) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.id = "tip";
  tip.setAttribute("role", "tooltip");
  tip.textContent = text;
  // Within a landmark, as all content is.
  (part.closest("main, dialog, header, aside, nav") ?? document.body).append(tip);
  const at = part.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const below = at.bottom + 6 + height < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  tip.style.top = `${below ? at.bottom + 6 : at.top - height - 6}px`;
  if (part.dataset.tip) part.setAttribute("aria-describedby", "tip");
}

export function offerTips() {
  let timer = 0;
  let part = null;
  const hide = () => {
    clearTimeout(timer);
    document.getElementById("tip")?.remove();
    if (part?.dataset.tip) part.removeAttribute("aria-describedby");
    part = null;
  };
  const begin = (event) => {
    const found = event.target.closest?.("[data-tip], .clip, .rows-table td");
    if (found === part) return;
    hide();
    const text = found && words(found);
    if (!text) return;
    part = found;
    timer = setTimeout(() => show(found, text), event.type === "focusin" ? 0 : WAIT);
  };
  document.addEventListener("pointerover", begin);
  document.addEventListener("focusin", begin);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
