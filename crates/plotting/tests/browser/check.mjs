// Opens reports in headless Chromium: no console errors, every figure there that `plotting all` drew, sorting, cards by click and
// by keyboard, CSV, dark, print, phone width, and no violation that axe-core finds.
//
//   node check.mjs RESULTS [--shots FOLDER]
//
// RESULTS is a folder in which `report --all` has written.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { browser, check, darkAndNarrow, end, open, shot, violations, widest } from "./browser.mjs";

const [folder, option, shots] = process.argv.slice(2);
assert(folder && (!option || (option === "--shots" && shots)), "usage: node check.mjs RESULTS [--shots FOLDER]");
const LARGEST = 4 * 1024 * 1024;

const pages = ["report.html", "comparison.html", ...readdirSync(folder).map((name) => join(name, "report.html"))]
  .filter((name) => existsSync(join(folder, name)));
assert(pages.length > 2, `no reports in ${folder}`);

const downloads = mkdtempSync(join(tmpdir(), "reports-"));
let slowest = 0;

const sorting = async (page, name) => {
  const found = await page.evaluate(() => {
    const values = (table, column) => [...table.tBodies[0].rows].map((row) => row.cells[column].dataset.value);
    const isSorted = (numbers, sign) =>
      numbers.every((number, place) => place === 0 || sign * (number - numbers[place - 1]) >= 0);
    for (const table of document.querySelectorAll(".table table")) {
      const columns = [...table.querySelectorAll(".columns th")];
      const column = columns.findIndex((heading, place) => place > 0 && values(table, place).filter(Boolean).length > 2);
      if (column < 0) continue;
      const button = columns[column].querySelector("button");
      const sorted = ["ascending", "descending"].map((direction, turn) => {
        button.click();
        const numbers = values(table, column).filter((value) => value !== undefined).map(Number);
        return columns[column].getAttribute("aria-sort") === direction && isSorted(numbers, turn ? -1 : 1);
      });
      button.click();
      if (!sorted.every(Boolean)) return table.dataset.name;
    }
    return null;
  });
  check(`${name}: sorting`, found === null, found);
  const button = await page.$(".table .columns button");
  await button.focus();
  await page.keyboard.press("Space");
  const order = await button.evaluate((button) => button.closest("th").getAttribute("aria-sort"));
  check(`${name}: sorting by keyboard`, order === "ascending" || order === "descending", order);
};

const cards = async (page, name) => {
  const heads = await page.$$(".map button");
  if (heads.length === 0) return;
  const title = () => page.$eval("#card-title", (element) => element.textContent);
  await heads[1].evaluate((head) => head.scrollIntoView({ block: "center" })); // not behind the links that stick to the top
  await heads[1].click();
  const [clicked, facts] = [await title(), await page.$$eval("#card-body dt", (terms) => terms.length)];
  check(`${name}: card by click`, /layer 1, head 2$/.test(clicked) && facts > 2, `${clicked}, ${facts} facts`);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  check(`${name}: card by keyboard`, /layer 1, head 3$/.test(await title()), await title());
  const color = () => page.$eval(".map button", (button) => button.style.background);
  const measures = await page.$$eval("#measure option", (options) => options.map((option) => option.value));
  const before = await color();
  if (measures.length > 1) {
    await page.select("#measure", measures[1]);
    check(`${name}: colours`, (await color()) !== before, before);
    await page.select("#measure", measures[0]);
  }
};

// Rows of the table of all heads, in lines: the lists at its far right must not fold, or whoever reads the left sees gaps.
const lines = async (page, name) => {
  const tallest = await page.evaluate(() => {
    const rows = [...document.querySelectorAll('[id^="heads-"] tbody tr')];
    const line = (cell) => parseFloat(getComputedStyle(cell).lineHeight);
    return Math.max(0, ...rows.map((row) => row.getBoundingClientRect().height / line(row.cells[0])));
  });
  check(`${name}: rows of all heads`, tallest < 3, `${tallest.toFixed(1)} lines tall`);
};

const saving = async (page, name) => {
  const session = await browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
  const rows = await page.$eval(".table table", (table) => [table.dataset.name, table.tBodies[0].rows.length]);
  await page.$eval(".save", (button) => button.click());
  const file = join(downloads, `${rows[0]}.csv`);
  for (let turn = 0; turn < 100 && !existsSync(file); turn += 1) await new Promise((done) => setTimeout(done, 50));
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\r\n").length : 0;
  check(`${name}: CSV`, lines === rows[1] + 1, `${lines} lines for ${rows[1]} rows`);
};

// The titles of the figures that `plotting all` has drawn of the subject of a page.
const drawn = (name) => {
  const figures = join(folder, dirname(name), "figures");
  if (dirname(name) === "." || !existsSync(figures)) return [];
  const pictures = readdirSync(figures).filter((file) => file.endsWith(".svg"));
  const title = (file) => /<title>([^]*?)<\/title>/.exec(readFileSync(join(figures, file), "utf8"))?.[1];
  const text = (markup) => markup.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
  return pictures.map((file) => text(title(file) ?? `${file} has no title`));
};

for (const name of pages) {
  const path = resolve(folder, name);
  check(`${name}: size`, statSync(path).size < LARGEST, statSync(path).size);
  const { page, paint } = await open(path, name);
  slowest = Math.max(slowest, paint);
  const figures = await page.$$eval("figure :not([hidden]) > svg", (all) =>
    all.map((svg) => [svg.querySelector("title")?.textContent, svg.getBoundingClientRect().height]));
  check(`${name}: figures`, name === "report.html" || figures.length > 0, "none");
  const shown = new Set(figures.map(([title]) => title));
  const absent = drawn(name).filter((title) => !shown.has(title));
  check(`${name}: figures that \`plotting\` drew`, absent.length === 0, absent.join("\n"));
  for (const [title, height] of figures) check(`${name}: figure ${title}`, title && height > 50, `${height} high`);
  await violations(page, `${name}, wide`);
  check(`${name}: width`, (await widest(page)) <= 0, await widest(page));
  await lines(page, name);
  await sorting(page, name);
  await cards(page, name);
  await saving(page, name);
  await shot(page, shots, name, "wide");
  await darkAndNarrow(page, name, shots);
  await page.setViewport({ width: 1280, height: 900 });
  await page.emulateMediaType("print");
  const printed = await page.evaluate(() => ({
    maps: [...document.querySelectorAll(".map, #card, .save, nav")].filter((one) => one.getClientRects().length).length,
    cut: [...document.querySelectorAll(".table > .scroll")].filter((box) => box.scrollHeight > box.clientHeight + 2).length,
  }));
  check(`${name}: print`, printed.maps === 0 && printed.cut === 0, JSON.stringify(printed));
  if (shots) await page.pdf({ path: join(shots, `${name.replace(/\W+/g, "-")}.pdf`), preferCSSPageSize: true, printBackground: true });
  await page.close();
}
rmSync(downloads, { recursive: true });
await end(`${pages.length} pages, slowest first paint after ${Math.round(slowest)} ms`);
