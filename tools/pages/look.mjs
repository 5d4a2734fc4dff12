// Looks at pages in Chromium as a reader would: at 1280 and 390 px, light, dark and in grey.
//
//   node look.mjs OUT NAME=PAGE.html...
//
// Writes OUT/NAME-WIDTH-LOOK.png and prints a table: the page's height, where its first chart begins, by how much it
// is wider than the window, and what axe finds. Exits 1 if a page is too wide or axe finds anything.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";

const WIDTHS = [1280, 390];
const LOOKS = ["light", "dark", "grey"];
// Chromium paints no higher picture in one piece.
const HIGHEST = 16000;

async function look(browser, out, name, page, width, how) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: how === "dark" ? "dark" : "light",
    bypassCSP: true,
  });
  const tab = await context.newPage();
  await tab.goto(pathToFileURL(resolve(page)).href);
  if (how === "grey") await tab.addStyleTag({ content: "html{filter:grayscale(1)}" });
  const sizes = await tab.evaluate(() => ({
    height: document.documentElement.scrollHeight,
    over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    chart: document.querySelector("figure svg")?.getBoundingClientRect().top ?? NaN,
  }));
  const clip = { x: 0, y: 0, width, height: Math.min(sizes.height, HIGHEST) };
  await tab.screenshot({ path: `${out}/${name}-${width}-${how}.png`, fullPage: true, clip });
  const found = how === "grey" ? { violations: [] } : await inspect(tab);
  await context.close();
  return { ...sizes, violations: found.violations };
}

// Folded parts are opened first, so that they are looked at too.
async function inspect(tab) {
  await tab.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  await tab.addScriptTag({ content: axe.source });
  return tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
}

function told(name, violation) {
  const first = violation.nodes[0];
  return `    ${name}: ${violation.id} (${violation.nodes.length}): ${violation.help}; first ${first.target} ${first.html.slice(0, 120)}`;
}

async function all(out, pages) {
  mkdirSync(out, { recursive: true });
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  let bad = 0;
  const known = new Set();
  console.log("page                      window  look   height px  first chart px  too wide by  axe");
  for (const [name, page] of pages) {
    for (const width of WIDTHS) {
      for (const how of LOOKS) {
        const one = await look(browser, out, name, page, width, how);
        const figures = [one.height, Math.round(one.chart), one.over, how === "grey" ? "-" : one.violations.length];
        const [height, chart, over, axeFound] = figures.map(String);
        console.log(
          `${name.padEnd(26)}${String(width).padStart(6)}  ${how.padEnd(5)}${height.padStart(11)}${chart.padStart(16)}${over.padStart(13)}${axeFound.padStart(5)}`,
        );
        for (const line of one.violations.map((violation) => told(name, violation))) {
          if (!known.has(line)) console.log(line);
          known.add(line);
        }
        bad += one.violations.length + (one.over > 0 ? 1 : 0);
      }
    }
  }
  await browser.close();
  return bad;
}

const [out, ...named] = process.argv.slice(2);
const pages = named.map((one) => one.split("="));
if (!out || pages.length === 0 || pages.some((one) => one.length !== 2)) {
  console.error("usage: node look.mjs OUT NAME=PAGE.html...");
  process.exit(2);
}
process.exit((await all(out, pages)) > 0 ? 1 : 0);
