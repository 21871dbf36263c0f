// The tabs of a page scroll sideways where they do not fit: the page begins with its own in sight.

export function showCurrentTab() {
  for (const tabs of document.querySelectorAll(".tabs")) {
    const tab = tabs.querySelector("[aria-current]");
    if (tab) tabs.scrollLeft = tab.offsetLeft + tab.offsetWidth - tabs.clientWidth + 24;
  }
}
