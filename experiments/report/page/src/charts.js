// Charts of ECharts, of which only what is used here becomes part of the page. They follow the theme, the width and the
// printer.

import { BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LegendScrollComponent,
  MarkLineComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

import { element } from "./dom.js";

use([
  AriaComponent, BarChart, CanvasRenderer, CustomChart, DataZoomComponent, GridComponent, HeatmapChart, LegendComponent,
  LegendScrollComponent, LineChart, MarkLineComponent, SVGRenderer, ScatterChart, TooltipComponent, VisualMapComponent,
]);

// Distinguishable also without colour vision (Okabe and Ito 2008), as in the program's SVG pictures; lighter on dark.
const kColours = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"],
  dark: ["#4ba3dc", "#ff8c42", "#2ec99a", "#e6a3c8", "#f5b92e", "#9bd5f7", "#e8e8e8", "#c9c95a"],
};
const kSymbols = ["circle", "rect", "triangle", "diamond", "roundRect", "arrow"];
export const symbolOf = (i) => kSymbols[Math.floor(i / 8) % kSymbols.length];
export const dashesOf = (i) => [[], [7, 3], [2, 2], [9, 3, 2, 3]][Math.floor(i / 8) % 4];

const kPaper = 700; // pixels across an A4 or letter page between its margins
let printing = false;
const isDark = () => {
  if (printing) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};

/// Colours of the moment.
export const palette = () => {
  const dark = isDark();
  return {
    series: kColours[dark ? "dark" : "light"],
    text: dark ? "#e4e7ea" : "#1b1f24",
    muted: dark ? "#9aa5b1" : "#59636e",
    line: dark ? "#39414a" : "#d8dee4",
    surface: dark ? "#1b2026" : "#ffffff",
    idle: dark ? "#4a535d" : "#c3cad2",
  };
};

/// What all charts have: fonts, a tooltip that stays on the page, a description for who cannot see them.
const base = (colours, description) => ({
  animation: false,
  color: colours.series,
  textStyle: { color: colours.text, fontFamily: getComputedStyle(document.body).fontFamily },
  aria: { enabled: true, label: { description } },
  tooltip: {
    confine: true,
    backgroundColor: colours.surface,
    borderColor: colours.line,
    textStyle: { color: colours.text, fontSize: 13 },
    extraCssText: "max-width: min(32rem, 90vw); white-space: normal;",
  },
});

/// An axis across in the colours of the page. `more` overrides.
export const axis = (colours, name, more = {}) => ({
  name,
  nameLocation: "middle",
  nameGap: 30,
  nameTextStyle: { color: colours.muted },
  axisLine: { lineStyle: { color: colours.line } },
  axisLabel: { color: colours.muted, hideOverlap: true },
  splitLine: { lineStyle: { color: colours.line, opacity: 0.6 } },
  ...more,
});

/// An axis up: its name stands above it, where it can be read.
export const upAxis = (colours, name, more = {}) =>
  axis(colours, name, { nameLocation: "end", nameGap: 12, nameTextStyle: { color: colours.muted, align: "left" }, ...more });

/// Room for legend, names and labels.
export const grid = (more = {}) => ({ left: 8, right: 24, top: 64, bottom: 40, containLabel: true, ...more });

export const legend = (colours, more = {}) => ({
  type: printing ? "plain" : "scroll", // paper has no buttons
  top: 0,
  textStyle: { color: colours.text },
  pageTextStyle: { color: colours.muted },
  pageIconColor: colours.text,
  pageIconInactiveColor: colours.line,
  inactiveColor: colours.muted,
  ...more,
});

/// Text for a tooltip: HTML, in which the texts of results are text.
export const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);

const charts = [];
const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) charts.find((chart) => chart.box === target)?.resize();
});

/// Arrows move, + and - zoom, 0 shows all.
const keyboard = ({ box, instance }) => {
  box.tabIndex = 0;
  box.title = "Arrows move, + and - zoom, 0 shows all; or drag, and turn the wheel with Ctrl";
  box.addEventListener("keydown", (event) => {
    const [{ start, end }] = instance.getOption().dataZoom;
    const span = end - start;
    const zoomTo = (from, to) => instance.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: Math.max(0, from), end: Math.min(100, to) });
    const move = (by) => {
      const from = Math.min(Math.max(0, start + by * span), 100 - span);
      zoomTo(from, from + span);
    };
    const actions = {
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), "+": () => zoomTo(start + span / 4, end - span / 4),
      "=": () => zoomTo(start + span / 4, end - span / 4), "-": () => zoomTo(start - span / 2, end + span / 2), 0: () => zoomTo(0, 100),
    };
    if (!(event.key in actions) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  });
};

/// A chart at the end of `parent`. `options(colours)` says what it shows now; `canvas` for tens of thousands of marks.
/// Returned: {redraw, instance, box}; `draw(height)` sets another height first.
export const chart = (parent, description, options, { height = 380, canvas = false } = {}) => {
  const box = element("div", { class: "chart", role: "img", "aria-label": description, style: `height: ${height}px` });
  parent.append(box);
  const instance = init(box, null, { renderer: canvas ? "canvas" : "svg" });
  const made = {
    box,
    instance,
    resize: () => instance.resize({ width: printing ? kPaper : "auto" }),
    redraw: (newHeight) => {
      if (newHeight) {
        box.style.height = `${newHeight}px`;
        made.resize();
      }
      const colours = palette();
      const all = base(colours, description);
      const own = options(colours);
      instance.setOption({ ...all, ...own, tooltip: { ...all.tooltip, ...own.tooltip } }, { notMerge: true });
    },
  };
  made.redraw();
  if (instance.getOption().dataZoom?.length) keyboard(made);
  charts.push(made);
  observer.observe(box);
  return made;
};

/// For tests: all charts of the page.
export const allCharts = charts;

export const redrawAll = () => {
  for (const each of charts) {
    const zoom = each.instance.getOption().dataZoom?.map(({ start, end }) => ({ start, end }));
    each.redraw();
    zoom?.forEach((part, dataZoomIndex) => each.instance.dispatchAction({ type: "dataZoom", dataZoomIndex, ...part }));
  }
};

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
addEventListener("beforeprint", () => {
  printing = true;
  for (const each of charts) each.resize();
  redrawAll();
});
addEventListener("afterprint", () => {
  printing = false;
  for (const each of charts) each.resize();
  redrawAll();
});
