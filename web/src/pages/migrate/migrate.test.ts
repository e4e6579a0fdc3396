import { expect, test } from "vitest";
import { stored, tar } from "./archive";
import { commonEnds, stretches } from "./diff";
import { leftOut, withoutTop } from "./project";

const bytes = (text: string) => new TextEncoder().encode(text);
const read = (data: Uint8Array) => new TextDecoder().decode(data);

test("an archive has a header before each file, and names of any length", () => {
  const long = `${"deep/".repeat(30)}end.py`;
  const archive = tar([
    { path: "train.sh", bytes: bytes("#!/bin/sh\n") },
    { path: long, bytes: bytes("x = 1\n") },
  ]);
  const record = (index: number) =>
    read(archive.subarray(index * 512, (index + 1) * 512)).replace(/\0+/g, " ");
  expect(archive.length % 512).toBe(0);
  expect(record(0)).toMatch(/^\.\/\.\/@LongLink 0000644 .* L ustar 00 $/);
  expect(record(1).trim()).toBe(long);
  expect(record(3).trim()).toBe("x = 1");
  expect(record(4)).toMatch(
    /^train\.sh 0000755 0000000 0000000 00000000012 00000000000 \d{6} {2}0 ustar 00 $/,
  );
});

test("a frame holds its content in blocks of at most 128 KiB", () => {
  const content = new Uint8Array((128 << 10) + 5).fill(7);
  const frame = stored(content);
  expect([...frame.subarray(0, 9)]).toEqual([0x28, 0xb5, 0x2f, 0xfd, 0, 0x38, 0, 0, 0x10]);
  expect([...frame.subarray(-8)]).toEqual([(5 << 3) | 1, 0, 0, 7, 7, 7, 7, 7]);
  expect(stored(new Uint8Array()).length, "nothing is one empty block").toBe(9);
});

test("ignore files hold for their folder and those below", () => {
  const isLeftOut = leftOut([
    { path: ".gitignore", text: "*.pyc\n/data/\n" },
    { path: "tools/.danluignore", text: "big.bin\n" },
  ]);
  const paths = ["a.pyc", "tools/b.pyc", "data/x", "lib/data/x", "big.bin", "tools/big.bin", ".git/HEAD"];
  expect(paths.filter(isLeftOut)).toEqual(["a.pyc", "tools/b.pyc", "data/x", "tools/big.bin", ".git/HEAD"]);
});

test("an archive's only folder is not part of the paths", () => {
  const files = (...paths: string[]) => paths.map((path) => ({ path, bytes: bytes("") }));
  const told = (list: { path: string }[]) => list.map(({ path }) => path);
  expect(told(withoutTop(files("main/a.py", "main/b/c.py")))).toEqual(["a.py", "b/c.py"]);
  expect(told(withoutTop(files("a.py", "b/c.py")))).toEqual(["a.py", "b/c.py"]);
});

test("what changed stands side by side", () => {
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`);
  const after = lines.with(9, "line ten").toSpliced(0, 0, "import torch_npu");
  const told = stretches(`${lines.join("\n")}\n`, `${after.join("\n")}\n`).map((rows) =>
    rows.map(({ left, right }) => `${left?.number ?? ""}|${right?.number ?? ""}`),
  );
  expect(told).toEqual([
    ["|1", "1|2", "2|3", "3|4"],
    ["7|8", "8|9", "9|10", "10|11", "11|12", "12|13", "13|14"],
  ]);
  expect(commonEnds('x.to("cuda")', 'x.to("npu")')).toEqual({ start: 6, end: 2 });
  expect(commonEnds("aa", "aaa")).toEqual({ start: 2, end: 0 });
});
