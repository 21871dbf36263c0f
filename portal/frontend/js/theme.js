// Sets the reader's theme and sidebar before the page is drawn: the only script that a page waits for.

const { dataset } = document.documentElement;
dataset.scripts = ""; // what works by scripts alone may hide until it is asked for
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") dataset.theme = theme;
  if (localStorage.getItem("side") === "slim") dataset.side = "slim";
} catch {
  // No storage: the system's theme and the wide sidebar stay.
}
