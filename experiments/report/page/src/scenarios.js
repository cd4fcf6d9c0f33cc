// All rows in a table: sorted, filtered, with the columns that the reader chooses.

import { axes, column, columns, digits, hasColumn, heading, rowCount, rows, shown, studies, value, varies } from "./data.js";
import { element, section } from "./dom.js";
import { meets, onQuestion, ranking } from "./question.js";
import { table } from "./table.js";

const kFirst = ["total_s", "cost", "energy_j", "iteration_s", "samples_per_s", "efficiency", "exposed_comm_s", "mfu", "peak_memory_bytes",
  "fits_memory", "goodput", "loss", "accuracy", "limited_by", "error"];
const kHidden = ["scenario", "study_number"];

/// Columns in which all rows agree say it once.
const common = () => columns.map(({ name }) => name)
  .filter((name) => !kHidden.includes(name) && rowCount > 1 && !varies(name) && value(0, name) !== null && !(Array.isArray(value(0, name)) && value(0, name).length === 0));

export const showScenarios = () => {
  const made = section("scenarios", "Scenarios");
  const useful = columns.map(({ name }) => name).filter((name) => !kHidden.includes(name) && (rowCount === 1 || varies(name)));
  const initial = [...(studies.length > 1 ? ["study"] : []), ...axes, "workers", ...kFirst];
  const chosen = new Set(useful.filter((name) => initial.includes(name)));
  const order = [...new Set([...initial, ...useful])].filter((name) => useful.includes(name) && hasColumn(name));

  const find = element("input", { type: "search", placeholder: "all words", "aria-label": "only rows with these words", input: () => show() });
  const count = element("output", { class: "note" });
  const picker = element("details", { class: "picker" }, element("summary", {}, "columns"),
    element("div", { class: "ticks" }, ...order.map((name) => element("label", {}, element("input", {
      type: "checkbox", checked: chosen.has(name),
      change: (event) => {
        if (event.target.checked) chosen.add(name);
        else chosen.delete(name);
        show();
      },
    }), heading(name)))));
  made.append(element("div", { class: "controls" }, element("label", { class: "control" }, element("span", {}, "find"), find), picker, count));

  let best = null;
  const list = table(made, "Scenarios", { marked: (row) => (row === best ? "best" : meets(row) ? "" : "out") });
  const textOf = (row) => [...chosen].map((name) => shown(row, name)).join(" ").toLowerCase();
  const show = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.includes(word));
    const found = words.length === 0 ? rows : rows.filter((row) => has(textOf(row)));
    count.textContent = found.length === rowCount ? `${digits(rowCount)} rows` : `${digits(found.length)} of ${digits(rowCount)} rows`;
    list.show(found, order.filter((name) => chosen.has(name)));
  };
  onQuestion(() => {
    [best = null] = ranking();
    show();
  });

  const same = common();
  if (same.length > 0)
    made.append(element("details", { class: "common" }, element("summary", {}, `the same in all rows: ${same.length} columns`),
      element("dl", {}, ...same.map((name) => element("div", {}, element("dt", {}, heading(name)), element("dd", {}, shown(0, name)))))));
};
