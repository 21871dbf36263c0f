// The button that changes between light and dark, and remembers it.

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

const remember = (theme) => {
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // No storage: the choice lasts for this page only.
  }
};

export function offerThemes() {
  const button = document.querySelector("[data-theme-button]");
  if (!button) return;
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    remember(theme);
    show();
    document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
  });
  button.hidden = false;
  show();
}
