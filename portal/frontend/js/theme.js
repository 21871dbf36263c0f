// Sets the reader's own theme before the page is drawn: the one script that a page waits for.

try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the machine's own theme it is.
}
