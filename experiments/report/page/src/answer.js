// The first screen: the best scenario under the reader's conditions, and what other choices would take.

import { axesOf, column, digits, failed, hasColumn, quantity, shown, studies, studyOf, value, varies } from "./data.js";
import { choice, element, tick } from "./dom.js";
import { alternatives, ask, considered, inMemory, objectives, onQuestion, question, ranking } from "./question.js";

const kDay = 86400;

/// Hours or days of a deadline as a person would write it.
const days = (seconds) => (seconds === null ? "" : String(Number((seconds / kDay).toPrecision(6))));

const numberField = (title, unit, is, changed) =>
  element("label", { class: "control" }, element("span", {}, `${title} [${unit}]`),
    element("input", {
      type: "number", min: "0", step: "any", value: is, placeholder: "any",
      input: (event) => {
        const number = Number.parseFloat(event.target.value);
        changed(Number.isFinite(number) && number > 0 ? number : null);
      },
    }));

const controls = () => {
  const made = element("div", { class: "controls" });
  if (studies.length > 1)
    made.append(choice("study", [["", "all"], ...studies.map((s, i) => [String(i), s.name])], String(question.study ?? ""),
      (is) => ask({ study: is === "" ? null : Number(is) })));
  if (objectives.length > 1)
    made.append(choice("minimise", objectives, question.minimise, (minimise) => ask({ minimise })));
  made.append(numberField("done within", "d", days(question.under_s), (is) => ask({ under_s: is === null ? null : is * kDay })));
  if (hasColumn("cost"))
    made.append(numberField("cost at most", column("cost").unit || "currency", question.budget ?? "", (budget) => ask({ budget })));
  if (hasColumn("fits_memory") && varies("fits_memory"))
    made.append(tick("must fit into memory", question.fits, (fits) => ask({ fits })));
  return made;
};

const conditions = () => {
  const parts = [];
  if (question.under_s !== null) parts.push(`done within ${days(question.under_s)} d`);
  if (question.budget !== null) parts.push(`for ${digits(question.budget)} ${column("cost").unit} at most`);
  if (question.fits && hasColumn("fits_memory")) parts.push("in the devices' memory");
  return parts.join(", ");
};

const objectiveName = () => objectives.find(([name]) => name === question.minimise)[1];

const kTiles = ["total_s", "cost", "energy_j", "co2_kg", "workers", "iteration_s", "samples_per_s", "tokens_per_s", "efficiency",
  "mfu", "peak_memory_bytes", "goodput"];

const tiles = (row) =>
  element("dl", { class: "tiles" },
    ...kTiles.filter((name) => hasColumn(name) && value(row, name) !== null)
      .map((name) => element("div", {}, element("dt", {}, column(name).title), element("dd", {}, quantity(row, name)))));

/// What counts among those who meet the conditions, or what rules the others out.
const counts = (ranked) => {
  const all = considered();
  const parts = [`${digits(ranked.length)} of ${digits(all.length)} scenarios meet the conditions`];
  const dead = all.filter(failed);
  const alive = all.filter((row) => !failed(row));
  const large = alive.filter((row) => !inMemory(row));
  const left = alive.filter(inMemory);
  const late = question.under_s === null ? [] : left.filter((row) => !(value(row, "total_s") <= question.under_s));
  const dear = question.budget === null ? [] : left.filter((row) => !late.includes(row) && !(value(row, "cost") <= question.budget));
  if (large.length) parts.push(`${digits(large.length)} do not fit into memory`);
  if (late.length) parts.push(`${digits(late.length)} that fit take too long`);
  if (dear.length) parts.push(`${digits(dear.length)} more cost too much`);
  if (dead.length) parts.push(`${digits(dead.length)} could not be simulated`);
  return `${parts.join("; ")}.`;
};

const alternativesTable = (ranked) => {
  const [best] = ranked;
  const least = value(best, question.minimise);
  const lines = alternatives(ranked).filter(({ axis }) => new Set(considered().map((row) => value(row, axis))).size > 1);
  if (lines.length === 0) return null;
  return element("table", { class: "alternatives" },
    element("caption", {}, "The best with another choice"),
    element("thead", {}, element("tr", {}, ...["instead of", "", objectiveName(), "more"].map((text, i) =>
      element("th", { scope: "col", class: i > 1 ? "number" : null }, text)))),
    element("tbody", {}, ...lines.map(({ axis, row }) =>
      element("tr", {}, element("th", { scope: "row" }, `${column(axis).title} = ${shown(best, axis)}`),
        ...(row === null
          ? [element("td", { colspan: "3", class: "none" }, "no other value meets the conditions")]
          : [element("td", {}, shown(row, axis)), element("td", { class: "number" }, quantity(row, question.minimise)),
             element("td", { class: "number" }, least > 0 ? `${((value(row, question.minimise) / least - 1) * 100).toFixed(1)} %` : "–")])))));
};

const nothing = () => {
  const fitting = considered().filter((row) => !failed(row) && inMemory(row) && value(row, "total_s") !== null);
  const fastest = fitting.reduce((best, row) => (best === null || value(row, "total_s") < value(best, "total_s") ? row : best), null);
  return element("p", { class: "verdict" }, "Nothing meets the conditions. ",
    fastest === null ? "" : `The fastest that fits takes ${quantity(fastest, "total_s")}${
      hasColumn("cost") && value(fastest, "cost") !== null ? ` and costs ${quantity(fastest, "cost")}` : ""}: ${
      axesOf(fastest).map((axis) => `${column(axis).title} ${shown(fastest, axis)}`).join(", ")}.`);
};

export const showAnswer = (parent) => {
  const head = element("p", { class: "asked" });
  const body = element("div", { class: "answer-body", "aria-live": "polite" });
  parent.append(controls(), head, body);
  onQuestion(() => {
    const ranked = ranking();
    const asked = conditions();
    head.textContent = question.minimise === null ? "" : `The least ${objectiveName()}${asked ? `, ${asked}` : ""}`;
    if (ranked.length === 0) {
      body.replaceChildren(nothing(), element("p", { class: "lead" }, counts(ranked)));
      return;
    }
    const [best] = ranked;
    const rest = question.minimise === "total_s" ? (hasColumn("cost") ? "cost" : null) : "total_s";
    body.replaceChildren(
      element("p", { class: "verdict" }, element("strong", {}, quantity(best, question.minimise)),
        rest && value(best, rest) !== null ? element("span", {}, rest === "cost" ? " for " : " in ", element("strong", {}, quantity(best, rest))) : null),
      element("dl", { class: "chosen" }, ...axesOf(best).map((axis) =>
        element("div", {}, element("dt", {}, column(axis).title), element("dd", {}, shown(best, axis)))),
        studies.length > 1 ? element("div", {}, element("dt", {}, "study"), element("dd", {}, studyOf(best).name)) : null),
      tiles(best),
      alternativesTable(ranked) ?? "",
      element("p", { class: "lead" }, counts(ranked)),
      value(best, "limited_by") ? element("p", { class: "limited", title: value(best, "limited_by") }, element("b", {}, "Limited by "), value(best, "limited_by")) : "",
      ...(value(best, "warnings") ?? []).map((text) => element("p", { class: "warning" }, text)));
  });
};
