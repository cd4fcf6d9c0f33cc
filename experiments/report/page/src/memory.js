// Memory by purpose at its peak, and during the passes of a step.

import { details, memoryOfPasses } from "./data.js";
import { axis, chart, escaped, grid, legend, upAxis } from "./charts.js";
import { section } from "./dom.js";

const kGiB = 2 ** 30;
const kPurposes = ["parameters", "gradients", "optimizer_state", "activations", "activation_gradients", "workspace", "reserve"];
const title = (name) => name.replaceAll("_", " ");
const gib = (bytes) => Number((bytes / kGiB).toPrecision(5));

const showPasses = (made, memory) => {
  const options = (colours) => ({
    grid: grid({ bottom: 84 }),
    legend: legend(colours),
    tooltip: {
      trigger: "axis",
      formatter: (items) => `<b>${escaped(memory.passes[items[0].dataIndex])}</b><br>${items.map((item) => `${item.marker} ${item.seriesName}: ${gib(item.value * kGiB)} GiB`).join("<br>")}`,
    },
    xAxis: axis(colours, "passes of a step, in order", { type: "category", data: memory.passes, boundaryGap: false,
      axisLabel: { color: colours.muted, hideOverlap: true, width: 110, overflow: "truncate" } }),
    yAxis: upAxis(colours, "memory [GiB]", { type: "value" }),
    dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl" }, { type: "slider", height: 22, bottom: 10, borderColor: colours.line, showDataShadow: false, labelFormatter: "" }],
    series: Object.entries(memory.parts).filter(([, bytes]) => bytes.some((b) => b > 0)).map(([name, bytes]) => ({
      name: title(name), type: "line", stack: "memory", areaStyle: { opacity: 0.75 }, lineStyle: { width: 0 }, showSymbol: false, step: "middle",
      data: bytes.map((b) => b / kGiB),
    })),
  });
  chart(made, `Memory during the passes of a step, of ${memory.title}`, options, { height: 400 });
};

const showPeaks = (made, holders) => {
  const options = (colours) => ({
    grid: grid({ top: 44 }),
    legend: legend(colours),
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (is) => `${gib(is * kGiB)} GiB` },
    xAxis: axis(colours, "memory at its peak [GiB]", { type: "value" }),
    yAxis: axis(colours, "", { type: "category", inverse: true, data: holders.map(({ name }) => name),
      axisLabel: { color: colours.muted, width: Math.min(320, innerWidth * 0.3), overflow: "truncate", interval: 0 } }),
    series: kPurposes.filter((purpose) => holders.some(({ memory }) => memory[purpose] > 0)).map((purpose) => ({
      name: title(purpose), type: "bar", stack: "memory", barMaxWidth: 22, data: holders.map(({ memory }) => memory[purpose] / kGiB),
    })),
  });
  chart(made, "Memory at its peak by purpose", options, { height: 100 + 30 * holders.length });
};

export const showMemory = () => {
  const holders = details.flatMap((entry) => entry.memory.map((memory) => ({
    name: [entry.title, entry.memory.length > 1 ? memory.holder : ""].filter(Boolean).join(": "), memory })));
  if (holders.length === 0 && memoryOfPasses.length === 0) return;
  const made = section("memory", "Memory");
  for (const memory of memoryOfPasses) {
    if (memoryOfPasses.length > 1) made.append(Object.assign(document.createElement("h3"), { textContent: memory.title }));
    showPasses(made, memory);
  }
  if (holders.length > 0) showPeaks(made, holders);
};
