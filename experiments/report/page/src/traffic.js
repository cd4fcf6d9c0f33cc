// Who sends how much to whom: the communication matrix of a step.

import { details } from "./data.js";
import { axis, chart, escaped, grid } from "./charts.js";
import { section } from "./dom.js";

const kUnits = ["B", "kB", "MB", "GB", "TB", "PB"];
const text = (bytes) => {
  const power = Math.min(kUnits.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(bytes, 1)) / 3)));
  return `${Number((bytes / 1000 ** power).toPrecision(4))} ${kUnits[power]}`;
};

const show = (made, { title, traffic }) => {
  const { names, bytes } = traffic;
  const cells = bytes.flatMap((row, from) => row.map((sent, to) => [to, from, sent])).filter(([, , sent]) => sent > 0);
  const most = Math.max(...cells.map(([, , sent]) => sent));
  const sums = bytes.map((row) => row.reduce((sum, sent) => sum + sent, 0));
  const options = (colours) => {
    const ends = (name, more) => axis(colours, name, { type: "category", data: names, splitLine: { show: false },
      axisLabel: { color: colours.muted, hideOverlap: true, width: 120, overflow: "truncate" }, ...more });
    return {
      grid: grid({ top: 24, bottom: 96 }),
      tooltip: { formatter: ({ data: [to, from, sent] }) => `${escaped(names[from])} to ${escaped(names[to])}: <b>${text(sent)}</b> a step<br>${escaped(names[from])} sends ${text(sums[from])} in all` },
      xAxis: ends("to", { nameGap: 34 }),
      yAxis: ends("from", { inverse: true, nameGap: 90 }),
      visualMap: { min: 0, max: most, orient: "horizontal", left: "center", bottom: 8, text: [text(most), "0"], calculable: false,
        textStyle: { color: colours.muted }, inRange: { color: [colours.surface, colours.series[0]] } },
      series: [{ type: "heatmap", data: cells, itemStyle: { borderColor: colours.line, borderWidth: names.length > 24 ? 0 : 0.5 } }],
    };
  };
  chart(made, `Bytes that ${traffic.of} send each other in a step of ${title}`, options,
    { height: Math.min(760, 220 + 22 * names.length), canvas: cells.length > 1000 });
};

export const showTraffic = () => {
  const shown = details.filter(({ traffic }) => traffic);
  if (shown.length === 0) return;
  const made = section("traffic", "Communication matrix");
  for (const entry of shown) {
    if (shown.length > 1) made.append(Object.assign(document.createElement("h3"), { textContent: entry.title }));
    show(made, entry);
  }
};
