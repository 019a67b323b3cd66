import puppeteer from "puppeteer-core";
const [url, out, width, height, kind, ...ys] = process.argv.slice(2);
const b = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const p = await b.newPage();
await p.setViewport({ width: +width, height: +height, isMobile: +width < 500 });
if (kind === "dark") await p.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
await p.goto("file://" + url);
const btn = await p.$(".map button.significant") ?? await p.$(".map button");
if (btn) await btn.click();
if (kind === "print") { await p.emulateMediaType("print"); }
for (const y of ys) {
  if (isNaN(+y)) await p.evaluate((s) => document.querySelector(s).scrollIntoView(), y); else await p.evaluate((v) => scrollTo(0, v), +y);
  await new Promise((r) => setTimeout(r, 150));
  await p.screenshot({ path: `${out}-${y.replace(/\W/g, "")}.png` });
}
console.log(await p.evaluate(() => document.documentElement.scrollHeight));
await b.close();
