// The options below a field (role=combobox): one is chosen, and the field names it to screen readers.

export function optionsOf(field, place) {
  const all = () => [...place.querySelectorAll("[role=option]")];
  const chosen = () => place.querySelector('[role=option][aria-selected="true"]');
  const choose = (option) => {
    chosen()?.setAttribute("aria-selected", "false");
    if (!option) return field.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", option.id);
  };
  const move = (step) => {
    const options = all();
    const at = options.indexOf(chosen());
    const to = at < 0 && step < 0 ? options.length - 1 : at + step;
    if (options.length) choose(options[(to + options.length) % options.length]);
  };
  return { all, chosen, choose, move };
}
