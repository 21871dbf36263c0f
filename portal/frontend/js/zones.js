// The choice between UTC and the reader's own time zone: a cookie, which the server reads.

const YEAR = 365 * 24 * 3600;

export function offerZones() {
  const menu = document.querySelector("[data-zones]");
  if (!menu) return;
  const local = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const chosen = /(?:^|; )zone=([^;]+)/.exec(document.cookie)?.[1] ?? "";
  menu.querySelector("[data-zone-name]").textContent = local;
  for (const button of menu.querySelectorAll("[data-zone]")) {
    const zone = button.dataset.zone && local;
    button.setAttribute("aria-pressed", String(zone === chosen));
    button.addEventListener("click", () => {
      const age = zone ? YEAR : 0;
      document.cookie = `zone=${zone}; path=/; max-age=${age}; samesite=lax`;
      location.reload();
    });
  }
  menu.hidden = false;
}
