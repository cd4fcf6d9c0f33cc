// Time against cost, energy or devices: every scenario a point, and the front that no other beats.

import { axes, column, distinct, failed, hasColumn, heading, isNumeric, label, quantity, scaled, value, varies } from "./data.js";
import { axis, chart, escaped, grid, legend, symbolOf, upAxis } from "./charts.js";
import { choice, element, tick } from "./dom.js";
import { considered, front, inMemory, meets, onQuestion, question, ranking } from "./question.js";

const kAcross = ["total_s", "iteration_s", "epoch_s", "time_to_target_s"];
const kUp = ["cost", "energy_j", "co2_kg", "workers", "peak_memory_bytes", "comm_bytes_per_iteration", "total_s"];
const kMostColours = 12;

const usable = (names) => names.filter((name) => hasColumn(name) && isNumeric(name) && varies(name));

/// Whether values span so much that a linear axis would hide the small ones.
export const wide = (numbers) => {
  const positive = numbers.filter((number) => number > 0);
  return positive.length === numbers.length && numbers.length > 0 && Math.max(...positive) > 20 * Math.min(...positive);
};

/// What a pointer over a scenario says.
export const tip = (row, names) =>
  [`<b>${escaped(label(row))}</b>`, ...names.filter((name) => hasColumn(name) && value(row, name) !== null)
    .map((name) => `${escaped(column(name).title)}: ${escaped(quantity(row, name))}`)].join("<br>");

export const showPareto = (parent) => {
  const across = usable(kAcross);
  const up = usable(kUp).filter((name) => name !== across[0]);
  if (across.length === 0 || up.length === 0) return false;
  const colourAxes = axes.filter((name) => varies(name) && distinct(considered(), name).length <= kMostColours);
  /// Those within twice the best's time and cost, if others are far away.
  const near = (some, best) => {
    const close = some.filter((row) => [state.x, state.y].every((name) => value(row, name) <= 2 * value(best, name)));
    return close.length > 1 ? close : some;
  };
  const state = { near: true, x: across[0], y: up[0], by: colourAxes.find((name) => !isNumeric(name)) ?? colourAxes[0] ?? "", log: false };
  const drawn = () => considered().filter((row) => !failed(row) && inMemory(row) && value(row, state.x) !== null && value(row, state.y) !== null);

  /// The conditions, as lines.
  const limits = () => [
    ...(question.under_s !== null && state.x === "total_s" ? [{ name: "deadline", xAxis: question.under_s / column("total_s").factor }] : []),
    ...(question.budget !== null && state.y === "cost" ? [{ name: "budget", yAxis: question.budget / column("cost").factor }] : []),
  ];

  const options = (colours) => {
    const [best] = ranking();
    const all = drawn();
    const some = state.near && best !== undefined ? near(all, best) : all;
    const edge = front(some, state.x, state.y);
    const groups = state.by === "" ? [null] : distinct(some, state.by);
    const point = (row) => ({ value: [scaled(row, state.x), scaled(row, state.y)], row });
    const type = state.log ? "log" : "value";
    return {
      grid: grid(),
      legend: legend(colours),
      tooltip: { formatter: ({ data }) => (data.row === undefined ? "" : tip(data.row, [state.x, state.y, "workers", "mfu", "peak_memory_bytes"])) },
      xAxis: axis(colours, heading(state.x), { type, scale: true }),
      yAxis: upAxis(colours, heading(state.y), { type, scale: true }),
      dataZoom: ["xAxisIndex", "yAxisIndex"].map((which) => ({ type: "inside", [which]: 0, zoomOnMouseWheel: "ctrl", filterMode: "none" })),
      series: [
        ...groups.map((group, i) => ({
          name: group === null ? "scenarios" : `${column(state.by).title} ${group}`,
          type: "scatter",
          symbol: symbolOf(i),
          data: some.filter((row) => group === null || value(row, state.by) === group)
            .map((row) => (meets(row) ? { ...point(row), symbolSize: 10 } : { ...point(row), symbolSize: 6, itemStyle: { opacity: 0.25 } })),
        })),
        { name: "front", type: "line", data: edge.map(point), showSymbol: false, step: "end", z: 1,
          lineStyle: { width: 1.5, color: colours.muted }, itemStyle: { color: colours.muted },
          markLine: { silent: true, symbol: "none", data: limits(), lineStyle: { color: colours.muted, type: "dashed" }, label: { formatter: "{b}", color: colours.muted, position: "insideEndTop" } } },
        ...(best !== undefined && some.includes(best)
          ? [{ name: "best", type: "scatter", symbolSize: 20, z: 5, data: [point(best)],
               itemStyle: { color: "transparent", borderColor: colours.text, borderWidth: 2.5 } }] : []),
      ],
    };
  };

  const bar = element("div", { class: "controls" });
  parent.append(bar);
  const figure = chart(parent, "Every scenario by time and cost, with the front that no other beats", options, { height: 400 });
  const redraw = (change) => {
    Object.assign(state, change);
    figure.redraw();
  };
  const named = (names) => names.map((name) => [name, column(name).title]);
  if (up.length > 1) bar.append(choice("up", named(up), state.y, (y) => redraw({ y })));
  if (across.length > 1) bar.append(choice("across", named(across), state.x, (x) => redraw({ x })));
  if (colourAxes.length > 1) bar.append(choice("colour", [["", "none"], ...named(colourAxes)], state.by, (by) => redraw({ by })));
  bar.append(tick("near the best", state.near, (is) => redraw({ near: is })), tick("log axes", state.log, (log) => redraw({ log })));
  onQuestion(() => figure.redraw());
  return true;
};
