// Where the time of an iteration goes: bars of computation, exposed communication and the rest.

import { column, digits, failed, hasColumn, label, value } from "./data.js";
import { axis, chart, escaped, grid, legend } from "./charts.js";
import { section } from "./dom.js";
import { considered, less, meets, onQuestion, question } from "./question.js";

const kBars = 24;

/// Seconds of an iteration in which a worker does what; they sum up to the iteration.
const partsOf = (row) => {
  const compute = value(row, "compute_s");
  const exposed = value(row, "exposed_comm_s");
  const hidden = Math.min(compute, Math.max(0, value(row, "comm_s") - exposed));
  return [compute - hidden, hidden, exposed, Math.max(0, value(row, "iteration_s") - compute - exposed)];
};
const kParts = ["computation alone", "computation that hides communication", "exposed communication", "neither: waiting, pipeline bubbles"];

export const showBreakdown = () => {
  const needed = ["iteration_s", "compute_s", "comm_s", "exposed_comm_s"];
  if (!needed.every(hasColumn)) return;
  const usable = () => considered().filter((row) => !failed(row) && needed.every((name) => typeof value(row, name) === "number"));
  if (usable().length === 0) return;

  let shownRows = [];
  const options = (colours) => {
    const { unit, factor } = column("iteration_s");
    const fills = [colours.series[0], colours.series[5], colours.series[1], colours.idle];
    return {
      color: fills,
      grid: grid({ top: 44 }),
      legend: legend(colours),
      tooltip: {
        trigger: "axis", axisPointer: { type: "shadow" },
        formatter: (items) => `<b>${escaped(label(shownRows[items[0].dataIndex]))}</b><br>${items.map(({ marker, seriesName, value: is }) => `${marker} ${seriesName}: ${digits(is)} ${unit}`).join("<br>")}`,
      },
      xAxis: axis(colours, `iteration [${unit}]`, { type: "value" }),
      yAxis: axis(colours, "", {
        type: "category", inverse: true, data: shownRows.map((row) => label(row)),
        axisLabel: { color: colours.muted, width: Math.min(320, innerWidth * 0.3), overflow: "truncate", interval: 0 },
      }),
      series: kParts.map((name, part) => ({
        name, type: "bar", stack: "time", barMaxWidth: 22, data: shownRows.map((row) => partsOf(row)[part] / factor),
      })),
    };
  };

  const made = section("breakdown", "Where the time goes", "Of an average iteration, per worker.");
  const lead = made.querySelector(".lead");
  let figure = null;
  onQuestion(() => {
    const all = usable();
    const few = all.length <= kBars;
    // Many: those that matter for the question first.
    const order = few || question.minimise === null ? all : [...all].sort((a, b) => meets(b) - meets(a) || less(a, b));
    shownRows = order.slice(0, kBars);
    lead.textContent = `Of an average iteration, per worker${few ? "" : `; the best ${kBars} of ${digits(all.length)} scenarios`}.`;
    const height = 100 + 30 * shownRows.length;
    if (figure === null) figure = chart(made, "Parts of an iteration's time by scenario", options, { height });
    else figure.redraw(height);
  });
};
