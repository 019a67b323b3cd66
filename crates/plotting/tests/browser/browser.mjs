// What tests of pages in headless Chromium share. CHROMIUM names the browser, if it is not `chromium`.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
// The sandbox needs rights that containers lack; the pages are our own.
export const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
let problems = 0;
export const check = (name, holds, found = "") => {
  if (holds) return;
  problems += 1;
  console.error(`${name}: ${found}`);
};

// A page that is open, whose errors and requests are problems; with the time of its first paint, in milliseconds: said, and not
// checked, since it is the machine's as much as the page's.
export const open = async (path, name) => {
  const page = await browser.newPage();
  page.on("console", (message) => check(`${name}: console`, message.type() !== "error", message.text()));
  page.on("pageerror", (error) => check(`${name}: script`, false, error.message));
  page.on("request", (request) => check(`${name}: network`, /^(file|data|blob):/.test(request.url()), request.url()));
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(pathToFileURL(resolve(path)).href);
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  return { page, paint: await page.waitForFunction(painted, { timeout: 10000 }).then((found) => found.jsonValue()) };
};

// All rules, or those that a change of colours or of width bears on.
export const violations = async (page, name, rules) => {
  // By the protocol, since the page's own policy lets no other script in.
  await page.evaluate(axe);
  // Rows after the fifth are as those before them, and there are thousands.
  const context = { exclude: [[".table tbody tr:nth-child(n+6)"], [".map tbody tr:nth-child(n+6)"]] };
  const options = rules ? { runOnly: rules } : {};
  const found = await page.evaluate((context, options) => window.axe.run(context, options), context, options);
  const words = ({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)} (${nodes.length})`;
  check(`${name}: axe`, found.violations.length === 0, found.violations.map(words).join("\n"));
};

export const widest = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

export const shot = async (page, folder, name, kind) => {
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name.replace(/\W+/g, "-")}-${kind}.png`), fullPage: true });
};

// In the dark, and on a phone.
export const darkAndNarrow = async (page, name, shots) => {
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  await violations(page, `${name}, dark`, ["color-contrast"]);
  await shot(page, shots, name, "dark");
  await page.emulateMediaFeatures([]);
  await page.setViewport({ width: 360, height: 780, isMobile: true, hasTouch: true });
  check(`${name}: phone`, (await widest(page)) <= 0, `${await widest(page)} too wide`);
  await violations(page, `${name}, phone`, ["scrollable-region-focusable", "target-size"]);
  await shot(page, shots, name, "phone");
};

export const end = async (said) => {
  await browser.close();
  console.log(`${said}, ${problems} problems`);
  process.exitCode = problems > 0 ? 1 : 0;
};
