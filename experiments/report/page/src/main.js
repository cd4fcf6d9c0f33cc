import { rowCount } from "./data.js";
import { showAnswer } from "./answer.js";
import { showBreakdown } from "./breakdown.js";
import { allCharts, redrawAll } from "./charts.js";
import { showTimelines } from "./gantt.js";
import { showMemory } from "./memory.js";
import { showTraffic } from "./traffic.js";
import { showPareto } from "./pareto.js";
import { showCaveats, showStudies } from "./provenance.js";
import { showScaling } from "./scaling.js";
import { showScenarios } from "./scenarios.js";
import { element } from "./dom.js";

const kThemes = ["auto", "light", "dark"];

const themeButton = () => {
  const root = document.documentElement;
  const button = element("button", {
    type: "button", id: "theme",
    click: () => {
      root.dataset.theme = kThemes[(kThemes.indexOf(root.dataset.theme) + 1) % kThemes.length];
      say();
      redrawAll();
    },
  });
  const say = () => (button.textContent = `theme: ${root.dataset.theme}`);
  root.dataset.theme = "auto";
  say();
  return button;
};

const start = () => {
  document.getElementById("tools").append(themeButton(), element("button", { type: "button", click: () => print() }, "print"));
  if (rowCount > 0) {
    const first = element("section", { id: "answer" });
    document.getElementById("sections").append(first);
    document.getElementById("contents").append(element("a", { href: "#answer" }, "Answer"));
    const left = element("div", { class: "answer" });
    const right = element("div", { class: "pareto" });
    first.append(left, right);
    showAnswer(left);
    if (rowCount === 1 || !showPareto(right)) first.classList.add("alone");
    if (rowCount > 1) showScaling();
    showBreakdown();
  }
  showTimelines();
  showMemory();
  showTraffic();
  if (rowCount > 0) {
    showScenarios();
    showCaveats();
  }
  showStudies();
  window.epocastCharts = allCharts;  // for tests
};

start();
