// Opens pages of `look` in headless Chromium: no request, no console error, heads by click and by keyboard, weights by pointer and by
// keyboard, the table for screen readers, dark, phone width, and no violation that axe-core finds.
//
//   node look.mjs FOLDER [--shots FOLDER]
//
// FOLDER holds the pages that the test `look` of `report` writes where LOOK_PAGES names it.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { check, darkAndNarrow, end, open, shot, violations, widest } from "./browser.mjs";

const [folder, option, shots] = process.argv.slice(2);
assert(folder && (!option || (option === "--shots" && shots)), "usage: node look.mjs FOLDER [--shots FOLDER]");
const names = readdirSync(folder).filter((name) => name.endsWith(".html"));
assert(names.length > 1, `no pages in ${folder}`);

const times = [];
for (const name of names) {
  const { page, paint } = await open(join(folder, name), name);
  // Until everything is drawn and the browser has nothing left to do.
  const idle = await page.evaluate(() => new Promise((done) => setTimeout(() => requestIdleCallback(() => done(performance.now())), 60)));
  times.push(`${name}: first paint after ${Math.round(paint)} ms, idle after ${Math.round(idle)} ms`);
  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  // The colour of the greatest weight, up to the rounding that transparency brings, as soon as it is drawn.
  const drawn = async (name, expected) => {
    for (const selector of ["#map canvas", ".map tr:last-child td:last-child canvas"]) {
      const isSame = (selector, expected) => {
        const canvas = document.querySelector(selector);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let most = 0;
        for (let place = 0; place < data.length; place += 4) if (data[place + 3] > data[most + 3]) most = place;
        return data[most + 3] > 40 && expected.every((part, at) => Math.abs(part - data[most + at]) <= 3);
      };
      const found = page.waitForFunction(isSame, { timeout: 10000 }, selector, expected);
      check(name, await found.then(() => true, () => false), `${selector} has other colours`);
    }
  };
  await drawn(`${name}: maps`, [0, 114, 178]);
  await violations(page, `${name}, wide`);
  check(`${name}: width`, (await widest(page)) <= 0, await widest(page));

  // What comes later in the page stands no higher on the screen.
  const inOrder = async (kind) => {
    const tops = await page.$$eval(".maps, .large, #card, #most", (parts) => parts.map((part) => Math.round(part.getBoundingClientRect().top)));
    const holds = tops.length === 4 && tops.every((top, place) => place === 0 || top >= tops[place - 1]);
    check(`${name}: order, ${kind}`, holds, tops);
  };
  await inOrder("wide");

  const heads = await page.$$(".map button");
  await heads[1].evaluate((head) => head.scrollIntoView({ block: "center" }));
  await heads[1].click();
  const chosen = await heads[1].evaluate((head) => head.dataset.head.split(":"));
  check(`${name}: head by click`, (await text("#title")) === `${chosen[0]}, layer ${chosen[1]}, head ${chosen[2]}`, await text("#title"));
  // The table of another head is not sorted any more, and does not say that it is.
  const sorted = () => page.$$eval("#most [aria-sort]", (headings) => headings.length);
  await page.$eval("#most .columns th:nth-child(2) button", (button) => button.click());
  check(`${name}: sorted`, (await sorted()) === 1, await sorted());
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  check(`${name}: sorted no more`, (await sorted()) === 0, await sorted());
  const next = `${chosen[0]}, layer ${Number(chosen[1]) + 1}, head ${chosen[2]}`;
  check(`${name}: head by keyboard`, (await text("#title")) === next, await text("#title"));
  check(`${name}: results`, (await text("#card-body")).length > 10, await text("#card-body"));

  // The first and the second token to the first, by keyboard and by pointer; the table says the same.
  await page.focus("#map");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  const [second, value] = [await text(".queries span:nth-child(2)"), await text("#value")];
  check(`${name}: weight by keyboard`, value.startsWith(`${second} \u2192 `) && /0\.\d+$/.test(value), value);
  const box = await (await page.$("#map canvas")).boundingBox();
  await page.mouse.move(box.x + 3, box.y + 3);
  const pointed = await text("#value");
  check(`${name}: weight by pointer`, pointed.startsWith(await text(".queries span")), pointed);
  const most = await page.$$eval("#most tbody tr", (rows) => rows.map((row) => Number(row.cells[1].dataset.value)));
  const length = await page.$$eval(".queries span", (tokens) => tokens.length);
  check(`${name}: table`, most.length === length && most.every((weight) => weight > 0 && weight <= 1), most);
  await shot(page, shots, name, "wide");
  await darkAndNarrow(page, name, shots);
  await inOrder("phone");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await drawn(`${name}: maps in the dark`, [124, 196, 245]);
  await page.close();
}
times.forEach((time) => console.log(time));
await end(`${names.length} pages`);
