// Pages of decisions: copy buttons, selecting a time in the plot, the live tail. All optional.

const announce = (text) => {
  const place = document.querySelector("[data-copied]");
  if (place) place.textContent = text;
};

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  if (!source || !navigator.clipboard) continue;
  const words = button.innerHTML;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
      announce("Copied");
    } catch {
      getSelection().selectAllChildren(source);
      announce("Selected: copy it with the keyboard");
    }
    setTimeout(() => {
      button.innerHTML = words;
      announce("");
    }, 2000);
  });
}

// A time selected in the plot becomes part of the query; the rest of it stays.

const minute = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16);

document.addEventListener("brush", ({ detail }) => {
  const query = new URLSearchParams(location.search);
  for (const name of ["before", "after", "line", "last", "q"]) query.delete(name);
  query.set("since", minute(detail.from));
  query.set("until", minute(Math.max(detail.to, detail.from + 60) + 59));
  location.search = query.toString();
});

// The live tail: newer decisions appear on top every few seconds until it is paused.

const EVERY = 4000;
const button = document.querySelector("[data-tail-button]");

if (button) {
  const words = button.querySelector("span");
  const status = document.querySelector("[data-tail-status]");
  let timer;
  const ask = () => {
    if (!document.hidden) document.getElementById("newer")?.dispatchEvent(new Event("tail"));
  };
  const follow = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(ask, EVERY) : undefined;
    button.setAttribute("aria-pressed", String(on));
    words.textContent = on ? "Pause" : "Follow live";
    if (on) ask();
  };
  button.hidden = false;
  button.addEventListener("click", () => follow(!timer));
  document.addEventListener("htmx:afterSwap", () => {
    const number = document.querySelector(".arrived")?.dataset.number;
    if (number) status.textContent = `${number} newer decision${number === "1" ? "" : "s"}`;
    document.querySelector(".empty")?.remove();
  });
}

// On a narrow screen the facets are above the list: closed ones keep the list in sight.
if (matchMedia("(max-width: 820px)").matches) {
  for (const facet of document.querySelectorAll(".facets details[open]")) facet.open = false;
}
