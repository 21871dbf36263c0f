// Colours of the style for drawings: a canvas takes no variable and no light-dark().

export const token = (name) => {
  const probe = document.createElement("span"); // an element resolves both
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};
