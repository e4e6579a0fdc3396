// Says what the first page and each route weigh over the wire, and fails where the first page weighs too much.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST_KILOBYTES = 350;
const dist = new URL("../dist/", import.meta.url).pathname;
const manifest = JSON.parse(readFileSync(`${dist}.vite/manifest.json`, "utf8"));

const weigh = (file) => gzipSync(readFileSync(dist + file), { level: 9 }).length / 1000;

/** Everything that a chunk needs before it runs. */
function closure(key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) closure(next, seen);
  return seen;
}

function weight(keys) {
  const files = new Set();
  for (const key of keys) {
    files.add(manifest[key].file);
    for (const style of manifest[key].css ?? []) files.add(style);
  }
  return [...files].reduce((sum, file) => sum + weigh(file), 0);
}

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const shell = closure(entry);
const routes = manifest[entry].dynamicImports ?? [];
console.log(`shell ${weight(shell).toFixed(0)} kB`);
let first = 0;
for (const route of routes) {
  const whole = weight(closure(route, new Set(shell)));
  console.log(`${whole.toFixed(0).padStart(6)} kB with ${route}`);
  if (/pages\/(jobs|overview)\//.test(route)) first = Math.max(first, whole);
}
// The words of one language come with it.
const words = Object.keys(manifest).filter((key) => /src\/i18n\/(en|zh)\.ts/.test(key));
first += Math.max(...words.map((key) => weight([key])));
console.log(`first page ${first.toFixed(0)} kB of at most ${MOST_KILOBYTES} kB`);
if (first === 0 || first > MOST_KILOBYTES) process.exit(1);
