// Writes a compressed copy beside every file of dist/ that is worth it; the server sends it to those who take it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const SMALLEST = 1024;
const dist = new URL("../dist/", import.meta.url).pathname;

for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(js|css|html|svg|json)$/.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const plain = readFileSync(path);
  if (plain.length >= SMALLEST) writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
}
