// node report_test.mjs CHROMIUM FOLDER: what a reader does with the pages in the folder. Leaves pictures of them there.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { chromium } from "playwright-core";

const [executablePath, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const kPatience = 60_000; // ms: a busy machine must not fail a test

/// Opens a page on which nothing may go wrong and which may not ask for anything.
const open = async (name, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1366, height: 768 }, ...options });
  context.setDefaultTimeout(kPatience);
  const page = await context.newPage();
  page.on("console", (message) => assert.fail(`${name}: console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => assert.fail(`${name}: ${error.stack}`));
  page.on("request", (request) => assert.match(request.url(), /^(file|data):/));
  await page.goto(`file://${folder}/${name}.html`, { timeout: kPatience });
  return page;
};

const tests = {
  "the first screen answers the buyer's question": async () => {
    const page = await open("buyers");
    const verdict = page.locator(".verdict");
    // As `epocast plan --minimise cost --under 5d --fits` prints it.
    assert.equal(await verdict.innerText(), "35,779 $ in 4.659 d");
    const box = await verdict.boundingBox();
    assert.ok(box.y > 0 && box.y + box.height < 768);
    assert.ok((await page.locator(".chosen").innerText()).includes("h100"));
    await page.screenshot({ path: `${folder}/buyers.png` });

    // Another question, another answer; a deadline that nobody meets.
    await page.getByLabel("done within").fill("4.6");
    assert.match(await verdict.innerText(), /\$ in 4\.[0-5]\d* d/);
    await page.getByLabel("done within").fill("1");
    assert.match(await verdict.innerText(), /^Nothing meets the conditions\. The fastest that fits takes/);
    await page.getByLabel("done within").fill("");
    await page.getByLabel("minimise").selectOption("total_s");
    const fastest = await verdict.innerText();
    assert.match(fastest, /^4\.\d+ d for [\d,]+ \$$/);
    await page.context().close();
  },

  "columns sort as numbers, both ways, and rows are found by words": async () => {
    const page = await open("buyers");
    await page.locator(".more").click();
    const numbers = () => page.locator("#scenarios tbody tr").evaluateAll((lines) => {
      const at = [...document.querySelectorAll("#scenarios thead th")].findIndex((cell) => cell.dataset.column === "cost");
      return lines.map((line) => Number(line.cells[at].title));
    });
    const heading = page.locator('#scenarios th[data-column="cost"]');
    await heading.getByRole("button").press("Enter");
    const up = await numbers();
    assert.equal(up.length, 912);
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
    assert.equal(await heading.getAttribute("aria-sort"), "ascending");
    await heading.getByRole("button").press("Enter"); // still has the focus
    assert.deepEqual(await numbers(), up.reverse());
    assert.equal(await heading.getAttribute("aria-sort"), "descending");
    assert.match(await heading.innerText(), /cost \[\$\]/);
    await page.getByLabel("only rows with these words").fill("a100 full");
    const found = await page.locator("#scenarios tbody tr").allInnerTexts();
    assert.ok(found.length > 0 && found.every((text) => text.includes("a100") && text.includes("full")));
    await page.context().close();
  },

  "timelines zoom together, by keyboard and by wheel": async () => {
    const page = await open("vgg16");
    const zooms = () => page.evaluate(() => window.epocastCharts.filter(({ box }) => box.closest(".timeline"))
      .map(({ instance }) => instance.getOption().dataZoom[0]).map(({ start, end }) => end - start));
    assert.deepEqual(await zooms(), [100, 100]);
    const [first] = await page.locator(".timeline .chart").all();
    await first.focus();
    await page.keyboard.press("+");
    assert.deepEqual(await zooms(), [50, 50]);
    await page.keyboard.press("0");
    assert.deepEqual(await zooms(), [100, 100]);
    await first.scrollIntoViewIfNeeded();
    const box = await first.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await page.waitForFunction(() => window.epocastCharts.find(({ box }) => box.closest(".timeline")).instance.getOption().dataZoom[0].start > 0);
    await page.screenshot({ path: `${folder}/vgg16.png`, fullPage: true });
    await page.context().close();
  },

  "the theme follows the system, then the reader": async () => {
    const page = await open("buyers", { colorScheme: "dark" });
    const colours = () => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, document.querySelector(".pareto svg text").getAttribute("fill") ?? document.querySelector(".pareto svg text").style.fill]);
    const dark = await colours();
    await page.locator("#theme").click();
    assert.equal(await page.locator("#theme").innerText(), "theme: light");
    const light = await colours();
    assert.notEqual(light[0], dark[0]);
    assert.notEqual(light[1], dark[1]);
    await page.locator("#theme").click();
    assert.deepEqual(await colours(), dark);
    await page.screenshot({ path: `${folder}/dark.png`, fullPage: true });
    await page.context().close();
  },

  "print has all rows, on white": async () => {
    const page = await open("buyers", { colorScheme: "dark" });
    await page.evaluate(() => addEventListener("beforeprint", () => { window.printed = document.querySelectorAll("#scenarios tbody tr").length; }));
    const pdf = await page.pdf({ path: `${folder}/buyers.pdf`, format: "A4", landscape: true });
    // Rows of a few lines: of 912, some twenty are on a page.
    const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
    assert.ok(pages > 10 && pages < 100, `${pages} pages`);
    assert.equal(await page.evaluate(() => window.printed), 912);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.equal(await page.locator("#tools").isVisible(), false);
    await page.context().close();
  },

  "nothing is wider than a phone": async () => {
    for (const name of ["buyers", "vgg16"]) {
      const page = await open(name, { viewport: { width: 360, height: 740 } });
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360, name);
      await page.screenshot({ path: `${folder}/${name}-phone.png`, fullPage: true });
      await page.context().close();
    }
  },

  "without JavaScript there are the answer, figures and tables": async () => {
    const page = await open("thousand", { javaScriptEnabled: false });
    assert.equal(await page.locator("tbody tr").count(), 1000);
    assert.ok(await page.locator(".verdict").isVisible());
    await page.screenshot({ path: `${folder}/plain.png` });
    await page.context().close();
  },

  "a thousand scenarios open in 2 s of processor time and take less than 5 MB": async () => {
    assert.ok(statSync(`${folder}/thousand.html`).size < 5e6);
    const context = await browser.newContext();
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const begin = performance.now();
    await page.goto(`file://${folder}/thousand.html`, { timeout: kPatience });
    await page.locator("#scenarios tbody tr").first().waitFor({ timeout: kPatience });
    const wall = performance.now() - begin;
    const { metrics } = await session.send("Performance.getMetrics");
    const seconds = metrics.find(({ name }) => name === "TaskDuration").value;
    console.log(`  ${seconds.toFixed(2)} s of processor time, ${(wall / 1000).toFixed(2)} s in all, ${statSync(`${folder}/thousand.html`).size} bytes`);
    assert.ok(seconds < 2);
    await context.close();
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (problem) {
    failed += 1;
    console.log(`FAILED: ${name}\n${problem.stack}`);
  }
}
await browser.close();
process.exit(failed > 0 ? 1 : 0);
