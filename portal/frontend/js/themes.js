// The buttons that change between light and dark, and remember it.

import { remember } from "./memory.js";

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

export function offerThemes() {
  const buttons = document.querySelectorAll("[data-theme-button]");
  const show = () => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(isDark()));
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      remember("theme", theme);
      show();
      document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
    });
    button.hidden = false;
  }
  show();
}
