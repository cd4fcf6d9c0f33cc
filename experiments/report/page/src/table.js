// A table of rows that sorts by any column, numbers as numbers, and shows so many rows at a time.

import { column, digits, heading, isNumeric, shown, value } from "./data.js";
import { element } from "./dom.js";

const kPage = 100;

/// Rows without a value come last, whichever way is up.
export const sorted = (some, name, descending) => {
  const sign = descending ? -1 : 1;
  const text = new Intl.Collator("en", { numeric: true });
  return [...some].sort((a, b) => {
    const left = value(a, name);
    const right = value(b, name);
    if (left === null || right === null) return (left === null) - (right === null) || a - b;
    if (typeof left === "number" && typeof right === "number") return sign * (left - right) || a - b;
    return sign * text.compare(String(left), String(right)) || a - b;
  });
};

/// A table at the end of `parent`. show(rows, columns) fills it; `marked(row)` is the class of a row, or "".
export const table = (parent, caption, { marked = () => "", sort = null } = {}) => {
  let some = [];
  let names = [];
  let by = sort;
  let descending = false;
  let limit = kPage;

  const head = element("thead");
  const body = element("tbody");
  const more = element("button", { class: "more", type: "button", click: () => ((limit *= 10), fill()) });
  parent.append(
    element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": caption },
      element("table", {}, element("caption", { class: "sr" }, caption), head, body)),
    more,
  );

  const fill = (all = false) => {
    const order = by === null || !names.includes(by) ? some : sorted(some, by, descending);
    const count = all ? order.length : Math.min(limit, order.length);
    const fragment = document.createDocumentFragment();
    for (const row of order.slice(0, count)) {
      const line = element("tr", { class: marked(row) || null, "data-row": row });
      for (const name of names) {
        const cell = document.createElement("td");
        cell.textContent = shown(row, name);
        if (isNumeric(name)) {
          cell.className = "number";
          if (value(row, name) !== null) cell.title = String(value(row, name));
        } else if (cell.textContent.length > 60) {
          cell.className = "long";
          cell.title = cell.textContent;
          cell.replaceChildren(element("div", {}, cell.textContent));
        }
        line.append(cell);
      }
      fragment.append(line);
    }
    body.replaceChildren(fragment);
    more.hidden = count === order.length;
    more.textContent = `${digits(order.length - count)} more rows`;
  };

  const fillHead = () => {
    const line = element("tr");
    for (const name of names) {
      const state = by === name ? (descending ? "descending" : "ascending") : "none";
      line.append(
        element("th", { scope: "col", "aria-sort": state, class: isNumeric(name) ? "number" : null, "data-column": name },
          element("button", {
            type: "button",
            title: `${name}: sort`,
            click: () => {
              descending = by === name && !descending;
              by = name;
              fillHead();
              fill();
              head.querySelector(`th[data-column="${CSS.escape(name)}"] button`).focus();
            },
          }, heading(name))),
      );
    }
    head.replaceChildren(line);
  };

  addEventListener("beforeprint", () => fill(true));
  addEventListener("afterprint", () => fill());
  return {
    show: (newRows, newColumns) => {
      some = newRows;
      names = newColumns.filter((name) => column(name) !== undefined);
      fillHead();
      fill();
    },
  };
};
