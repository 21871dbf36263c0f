// What the browser remembers for a reader; without storage it lasts for the page.

export const remember = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    // No storage: the choice lasts for this page only.
  }
};

export const recall = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};

// Names of what belongs to one reader: another may sign in with the same browser.
export const own = (name) => `${name}:${document.body.dataset.user || ""}`;
