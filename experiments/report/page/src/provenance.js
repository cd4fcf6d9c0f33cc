// What to know before relying on the numbers: warnings, failures, studies, programs and files.

import { column, digits, hasColumn, label, rowCount, rows, studies, value } from "./data.js";
import { element, section } from "./dom.js";
import { meets, onQuestion } from "./question.js";

/// Texts of all rows, and who has them.
const gather = (some, textsOf) => {
  const found = new Map();
  for (const row of some) for (const text of textsOf(row)) found.set(text, [...(found.get(text) ?? []), row]);
  return [...found];
};

const list = (entries) =>
  element("ul", { class: "texts" }, ...entries.map(([text, of]) => element("li", {}, text, " ",
    element("span", { class: "note" }, of.length === rowCount ? "all scenarios" : of.length === 1 ? label(of[0]) : `${digits(of.length)} scenarios`))));

/// Numbers, and what is recommended, vary with scenarios: what begins alike is said once, by an example.
const alike = (entries) => {
  const groups = new Map();
  for (const [text, of] of entries) {
    const key = text.replace(/\([^)]*\)/g, "").replace(/\d[\d.]*( ?([kKMGTPE]i?)?B| [mun]?s)?\b/g, "#").replace(/[,;:].*/, "");
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { text, of: [...of], variants: 1 });
    else {
      group.of.push(...of);
      group.variants += 1;
    }
  }
  return [...groups.values()].map(({ text, of, variants }) => [variants > 1 ? `${text} (and ${digits(variants - 1)} alike)` : text, of]);
};

export const showCaveats = () => {
  const warningsOf = (row) => value(row, "warnings") ?? [];
  const errors = alike(gather(rows, (row) => (value(row, "error") === null ? [] : [value(row, "error")])));
  if (errors.length === 0 && !rows.some((row) => warningsOf(row).length > 0)) return;
  const made = section("caveats", "Before relying on this");
  const body = element("div");
  made.append(body);
  onQuestion(() => {
    const inside = alike(gather(rows.filter(meets), warningsOf));
    const outside = alike(gather(rows.filter((row) => !meets(row)), warningsOf));
    body.replaceChildren(
      element("h3", {}, "Warnings of scenarios that meet the conditions"), inside.length > 0 ? list(inside) : element("p", { class: "lead" }, "None."),
      ...(outside.length > 0 ? [element("details", {}, element("summary", {}, `warnings of those that do not: ${outside.length}`), list(outside))] : []),
      ...(errors.length > 0 ? [element("h3", {}, "Without a result"), list(errors)] : []));
  });
};

const facts = (pairs) =>
  element("dl", { class: "facts" }, ...pairs.filter(([, text]) => text !== null && text !== undefined && text !== "")
    .map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text))));

export const showStudies = () => {
  const made = section("studies", studies.length > 1 ? "Studies" : "Study");
  studies.forEach((study, number) => {
    const stacks = hasColumn("stack") ? [...new Set(rows.filter((row) => value(row, "study_number") === number).map((row) => value(row, "stack")))].filter(Boolean) : [];
    made.append(element("h3", {}, study.name), facts([
      ["from", study.source], ["run", study.run === null ? null : String(study.run)], ["started", study.started],
      ["program", study.program], ["scenarios", study.scenarios === null ? null : `${digits(study.stored)} of ${digits(study.scenarios)}`],
      ["axes", study.axes.map((axis) => column(axis)?.title ?? axis).join(", ")], ["software stack", stacks.join(", ")],
    ]));
    if (study.text) made.append(element("details", {}, element("summary", {}, "the study, resolved"), element("pre", {}, study.text)));
    const inputs = Object.entries(study.inputs);
    if (inputs.length > 0)
      made.append(element("details", {}, element("summary", {}, `files read: ${inputs.length}`),
        element("table", { class: "files" }, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "file"), element("th", { scope: "col" }, "fingerprint"))),
          element("tbody", {}, ...inputs.map(([file, print]) => element("tr", {}, element("td", {}, file), element("td", { class: "mono" }, print)))))));
  });
};
