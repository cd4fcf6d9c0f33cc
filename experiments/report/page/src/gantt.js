// Timelines: a lane for each queue of each device, a slice for each task; beside each other, zoomed together.

import { timelines, digits } from "./data.js";
import { axis, chart, escaped, grid, legend } from "./charts.js";
import { element, section, tick } from "./dom.js";
import { connect, disconnect, graphic } from "echarts/core";

/// Pixels of a lane: more where there are few.
const laneHeight = (lanes) => Math.max(22, 48 - 4 * lanes);
const kTimes = [[1e3, "us"], [1e6, "ms"], [1e9, "s"]];

/// Kinds of slices by what they do; the colour says it.
const kKinds = [["forward", "forward"], ["backward", "backward"], ["update", "update"], ["communication", "communication"], ["other", "other"]];
const kindOf = (name, role) => {
  if (role === "communication") return 3;
  const found = kKinds.findIndex(([word]) => name.startsWith(word));
  return found < 0 ? 4 : found;
};

/// Slices are [lane, name, start ns, duration ns] one behind the other.
const sliceCount = (timeline) => timeline.slices.length / 4;

const showTimeline = (parent, timeline, factor, unit, end) => {
  const lanes = timeline.lanes;
  const byKind = kKinds.map(() => []);
  for (let s = 0; s < timeline.slices.length; s += 4) {
    const [lane, name, start, duration] = timeline.slices.slice(s, s + 4);
    const [text, role] = timeline.names[name];
    byKind[kindOf(text, role)].push([start / factor, (start + duration) / factor, lane, name]);
  }
  const options = (colours) => {
    const fills = [colours.series[0], colours.series[5], colours.series[4], colours.series[1], colours.idle];
    return {
      grid: grid({ top: 34, bottom: 76 }),
      legend: legend(colours, { data: kKinds.filter((_, k) => byKind[k].length).map(([, title]) => title) }),
      tooltip: {
        formatter: ({ value: [from, to, lane, name] }) =>
          `<b>${escaped(timeline.names[name][0])}</b><br>${escaped(lanes[lane].device)}, ${escaped(lanes[lane].name)}<br>from ${digits(from)} to ${digits(to)} ${unit}: ${digits(to - from)} ${unit}`,
      },
      xAxis: axis(colours, `time [${unit}]`, { type: "value", min: 0, max: end / factor, nameGap: 24 }),
      yAxis: axis(colours, "", {
        type: "category", inverse: true, data: lanes.map((lane) => `${lane.device.split(" ")[0]} ${lane.name}`),
        splitLine: { show: true, lineStyle: { color: colours.line, opacity: 0.5 } },
        axisLabel: { color: colours.muted, width: 170, overflow: "truncate", interval: 0 },
      }),
      dataZoom: [
        { type: "inside", xAxisIndex: 0, filterMode: "weakFilter", zoomOnMouseWheel: "ctrl" },
        { type: "slider", xAxisIndex: 0, filterMode: "weakFilter", height: 22, bottom: 10, borderColor: colours.line, textStyle: { color: colours.muted }, brushSelect: false },
      ],
      series: kKinds.map(([, name], kind) => ({
        name, type: "custom", color: fills[kind], itemStyle: { color: fills[kind] }, data: byKind[kind],
        dimensions: ["from", "to", "lane", "name"], encode: { x: [0, 1], y: 2 }, clip: true, progressive: 5000,
        renderItem: (params, api) => {
          const [x0, y] = api.coord([api.value(0), api.value(2)]);
          const [x1] = api.coord([api.value(1), api.value(2)]);
          const height = api.size([0, 1])[1] * 0.72;
          const { x, width, y: top, height: tall } = params.coordSys;
          const shape = graphic.clipRectByRect({ x: x0, y: y - height / 2, width: Math.max(x1 - x0, 0.5), height }, { x, y: top, width, height: tall });
          return shape && { type: "rect", shape, style: { fill: fills[kind], stroke: x1 - x0 > 6 ? colours.surface : null, lineWidth: 0.5 } };
        },
      })).filter((_, kind) => byKind[kind].length > 0),
    };
  };
  const box = element("div", { class: "timeline" }, element("h3", {}, timeline.title));
  parent.append(box);
  const made = chart(box, `Timeline of ${timeline.title}: ${lanes.length} lanes, ${sliceCount(timeline)} slices`, options,
    { height: 120 + laneHeight(lanes.length) * Math.min(lanes.length, 40), canvas: true });
  if (timeline.notes.length > 0) box.append(element("p", { class: "note" }, `${timeline.notes.join("; ")}.`));
  return made;
};

export const showTimelines = () => {
  if (timelines.length === 0) return;
  const lead = "Drag the slider below a timeline, or hold Ctrl and turn the wheel. With the keyboard: arrows move, + and – zoom, 0 shows all.";
  const made = section("timelines", timelines.length > 1 ? "Timelines" : "Timeline", lead);
  const grid = element("div", { class: timelines.length > 1 ? "side-by-side" : "" });
  const last = Math.max(...timelines.map((timeline) => timeline.end));
  const [factor, unit] = kTimes.reduce((best, time) => (last >= time[0] ? time : best), kTimes[0]);
  if (timelines.length > 1) {
    const together = (on) => (on ? connect(group) : disconnect(group));
    made.append(element("div", { class: "controls" }, tick("zoom together", true, together)));
  }
  made.append(grid);
  const group = "timelines";
  // One scale for all, so that the shorter looks shorter.
  for (const timeline of timelines) showTimeline(grid, timeline, factor, unit, last).instance.group = group;
  if (timelines.length > 1) connect(group);
};
