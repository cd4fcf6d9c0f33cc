// Elements from JavaScript, with text only as text.

/// element("a", {href: "#x"}, "text", child). Attributes that are functions are listeners; false and null are left out.
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, is] of Object.entries(attributes)) {
    if (typeof is === "function") made.addEventListener(key, is);
    else if (is !== false && is !== null && is !== undefined) made.setAttribute(key, is === true ? "" : is);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

/// A labelled choice; `options`: [value, text].
export const choice = (title, options, chosen, changed) =>
  element(
    "label",
    { class: "control" },
    element("span", {}, title),
    element(
      "select",
      { change: (event) => changed(event.target.value) },
      ...options.map(([is, text]) => element("option", { value: is, selected: is === chosen }, text)),
    ),
  );

export const tick = (title, on, changed) =>
  element(
    "label",
    { class: "control tick" },
    element("input", { type: "checkbox", checked: on, change: (event) => changed(event.target.checked) }),
    element("span", {}, title),
  );

/// A section of the page, listed in the navigation. `lead`: a sentence below its title.
export const section = (id, title, lead) => {
  const made = element("section", { id }, element("h2", {}, title), lead ? element("p", { class: "lead" }, lead) : null);
  document.getElementById("sections").append(made);
  document.getElementById("contents").append(element("a", { href: `#${id}` }, title));
  return made;
};
