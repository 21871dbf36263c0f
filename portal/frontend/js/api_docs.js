// The API's page follows the reader's theme: Swagger's own dark look hangs on a class of the page.

const page = document.documentElement;
const isDark = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  const chosen = page.dataset.theme;
  page.classList.toggle("dark-mode", chosen ? chosen === "dark" : isDark.matches);
}

isDark.addEventListener("change", follow);
follow();
