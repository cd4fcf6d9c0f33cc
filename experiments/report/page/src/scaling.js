// A column over an axis of numbers: lines for the values of another axis, and what perfect scaling would give.

import { axes, column, columns, distinct, failed, heading, isNumeric, scaled, value, varies } from "./data.js";
import { axis, chart, dashesOf, grid, legend, symbolOf, upAxis } from "./charts.js";
import { choice, element, section, tick } from "./dom.js";
import { considered, inMemory, less, objectives, onQuestion, question } from "./question.js";
import { tip, wide } from "./pareto.js";

const kEvery = "*";  // a line for each combination of the other axes
const kMostLines = 24;

/// How columns change with the number of devices if nothing is lost: as its power.
const kIdeal = { samples_per_s: 1, tokens_per_s: 1, speedup: 1, total_s: -1, epoch_s: -1, cost: 0, energy_j: 0, co2_kg: 0, efficiency: 0, mfu: 0, hfu: 0 };

const groupOf = (row, state) =>
  state.by === kEvery ? axes.filter((name) => name !== state.x).map((name) => value(row, name)).join(", ")
  : state.by === "" ? "best" : String(value(row, state.by));

/// Names of lines, and the rows at their points: of several at one place the best by the question's objective.
const linesOf = (some, state) => {
  const lines = new Map();
  for (const row of some) {
    const name = groupOf(row, state);
    if (!lines.has(name)) lines.set(name, new Map());
    const points = lines.get(name);
    const at = value(row, state.x);
    if (!points.has(at) || (question.minimise !== null && less(row, points.get(at)) < 0)) points.set(at, row);
  }
  return [...lines].map(([name, points]) => [name, [...points].sort(([a], [b]) => a - b).map(([, row]) => row)]);
};

export const showScaling = () => {
  const numeric = (name) => isNumeric(name) && varies(name);
  const across = [...new Set(["workers", ...axes])].filter((name) => column(name) && numeric(name));
  const up = columns.map(({ name }) => name).filter((name) => numeric(name) && !axes.includes(name) && name !== "workers");
  if (across.length === 0 || up.length === 0) return;
  const others = (x) => axes.filter((name) => name !== x && varies(name));
  const usable = (state) => considered().filter((row) => !failed(row) && inMemory(row) && typeof value(row, state.x) === "number" && value(row, state.y) !== null);

  /// As many lines as can be told apart, with as many points as there are.
  const chooseGroup = (state) => {
    const rank = (by) => {
      const lines = linesOf(usable({ ...state, by }), { ...state, by });
      return lines.length > kMostLines ? -1 : Math.max(0, ...lines.map(([, points]) => points.length)) + (by === kEvery ? 0.5 : 0);
    };
    return [kEvery, ...others(state.x), ""].reduce((best, by) => (rank(by) > rank(best) ? by : best));
  };

  const state = { x: across[0], y: up.includes("samples_per_s") ? "samples_per_s" : up[0], by: "", log: false, ideal: true };
  state.by = chooseGroup(state);
  state.log = wide(usable(state).map((row) => value(row, state.x)));

  const hasIdeal = () => state.x === "workers" && state.y in kIdeal;
  const idealLines = (lines, colours) => {
    if (!state.ideal || !hasIdeal()) return [];
    const long = lines.filter(([, points]) => points.length > 1);
    const from = long.length <= 3 ? long : long.slice(0, 1);
    return from.map(([name, points]) => ({
      name: from.length > 1 ? `ideal, ${name}` : "ideal",
      type: "line", showSymbol: false, silent: true, z: 1,
      lineStyle: { type: "dashed", width: 1.5, color: colours.muted }, itemStyle: { color: colours.muted },
      data: points.map((row) => [scaled(row, state.x),
        scaled(points[0], state.y) * (value(row, state.x) / value(points[0], state.x)) ** kIdeal[state.y]]),
    }));
  };

  const options = (colours) => {
    const lines = linesOf(usable(state), state);
    const type = state.log ? "log" : "value";
    const places = [...new Set(lines.flatMap(([, points]) => points.map((row) => scaled(row, state.x))))].sort((a, b) => a - b);
    const isPowers = places.every((at) => Number.isInteger(Math.log2(at)));
    return {
      grid: grid(),
      legend: legend(colours),
      tooltip: { formatter: ({ data }) => (data.row === undefined ? "" : tip(data.row, [state.x, state.y, "total_s", "cost", "efficiency"])) },
      xAxis: axis(colours, heading(state.x), { type, scale: true, ...(state.log && isPowers ? { logBase: 2 } : {}) }),
      yAxis: upAxis(colours, heading(state.y), { type, scale: state.log }),
      series: [
        ...lines.map(([name, points], i) => ({
          name: state.by === kEvery || state.by === "" ? name || "all" : `${column(state.by).title} ${name}`,
          type: "line", symbol: symbolOf(i), symbolSize: 8, lineStyle: { type: dashesOf(i), width: 2 },
          data: points.map((row) => ({ value: [scaled(row, state.x), scaled(row, state.y)], row })),
        })),
        ...idealLines(lines, colours),
      ],
    };
  };

  const made = section("scaling", "Scaling");
  const bar = element("div", { class: "controls" });
  const note = element("p", { class: "lead" });
  made.append(bar, note);
  const figure = chart(made, "A column of results over an axis of numbers", options, { height: 420 });
  const named = (names) => names.map((name) => [name, column(name).title]);
  const redraw = (change = {}) => {
    Object.assign(state, change);
    if ("x" in change) state.by = chooseGroup(state);
    const every = linesOf(usable(state), { ...state, by: kEvery }).length;
    bar.replaceChildren(
      choice("up", named(up), state.y, (y) => redraw({ y })),
      choice("across", named(across), state.x, (x) => redraw({ x })),
      choice("lines", [["", "the best of all"], ...named(others(state.x)), ...(every <= kMostLines ? [[kEvery, "every combination"]] : [])],
        state.by, (by) => redraw({ by })),
      tick("log axes", state.log, (log) => redraw({ log })),
      hasIdeal() ? tick("ideal", state.ideal, (ideal) => redraw({ ideal })) : "");
    const objective = objectives.find(([name]) => name === question.minimise);
    note.textContent = state.by === kEvery || objective === undefined ? ""
      : `Where several scenarios share a point, it is the one of least ${objective[1]}.`;
    figure.redraw();
  };
  onQuestion(() => redraw());
};
