import { expect, test } from "vitest";
import type { LogLine, LogLines } from "../api/client";
import { isReport, plain, spans } from "./ansi";
import { LogBuffer, MOST_LINES } from "./buffer";
import { byRank, ERRORS } from "./search";

const line = (number: number, rank = 0): LogLine => ({
  attempt: 1,
  worker: 0,
  rank,
  number,
  at: "2030-01-01T00:00:00Z",
  stream: "stdout",
  text: `line ${number}`,
});

/** Lines `from` up to `to`, as the server gives them; a cursor is the number of the line before which it stands. */
function page(from: number, to: number, last: number): LogLines {
  return {
    items: Array.from({ length: to - from }, (_, index) => line(from + index)),
    before: from > 0 ? String(from) : undefined,
    next: to < last ? String(to) : undefined,
    end: `1!${to}`,
  };
}

const numbers = (buffer: LogBuffer) => [
  buffer.lines[0]?.number,
  buffer.lines.at(-1)?.number,
  buffer.lines.length,
];

test("colours of a terminal become spans, and the rest of its escapes go", () => {
  expect(spans("a \u001b[1;31mred\u001b[0m b")).toEqual([
    { text: "a " },
    { text: "red", bold: true, tone: "var(--failed)" },
    { text: " b" },
  ]);
  expect(spans("\u001b[38;5;2mgreen \u001b[38;2;1;2;3mown\u001b[39m none")).toEqual([
    { text: "green ", tone: "var(--succeeded)" },
    { text: "own", tone: "var(--succeeded)" },
    { text: " none", tone: undefined },
  ]);
  expect(plain("\u001b]0;title\u0007\u001b[2Kkept")).toBe("kept");
});

test("a progress bar shows its last state", () => {
  expect(plain("10 %\r50 %\r90 %")).toBe("90 %");
  expect(plain("whole line\r")).toBe("whole line");
});

test("a log is walked through from its end to its beginning and back, and no line is lost or doubled", () => {
  const last = MOST_LINES + 25_000;
  const step = 1000;
  const buffer = new LogBuffer();
  buffer.open(page(last - step, last, last));
  expect(buffer.isAtEnd).toBe(true);
  while (buffer.before) {
    const to = Number(buffer.before);
    expect(buffer.prepend(page(Math.max(0, to - step), to, last))).toBe(Math.min(step, to));
  }
  expect(numbers(buffer)).toEqual([0, MOST_LINES - 1, MOST_LINES]);
  expect(buffer.isAtEnd, "the end was let go, and is not followed").toBe(false);
  expect(buffer.end).toBeUndefined();
  while (buffer.next) {
    const from = Number(buffer.next);
    buffer.append(page(from, Math.min(last, from + step), last));
  }
  expect(numbers(buffer)).toEqual([last - MOST_LINES, last - 1, MOST_LINES]);
  expect(buffer.before).toBe(String(last - MOST_LINES));
  expect(buffer.end).toBe(`1!${last}`);
});

test("a log that is followed for long lets go of its beginning where it can come back", () => {
  const buffer = new LogBuffer();
  buffer.open(page(0, 1000, 1000));
  let dropped = 0;
  for (let from = 1000; from < MOST_LINES + 5500; from += 500) {
    dropped += buffer.follow(page(from, from + 500, from + 500).items, `1!${from + 500}`);
  }
  expect(numbers(buffer)).toEqual([5500, MOST_LINES + 5499, MOST_LINES]);
  expect([dropped, buffer.before]).toEqual([5500, "5500"]);
});

test("hits are counted by rank, most first", () => {
  expect(byRank([line(1, 3), line(2, 0), line(3, 3), line(4, 1)])).toEqual([
    [3, 2],
    [0, 1],
    [1, 1],
  ]);
});

test("errors are found as Python, CUDA, NCCL and CANN print them", () => {
  // The server reads it; flags stand in the pattern there.
  const pattern = new RegExp(ERRORS.replace("(?i)", ""), "i");
  for (const text of [
    "Traceback (most recent call last):",
    "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
    "FileNotFoundError: [Errno 2] No such file",
    "torch.cuda.OutOfMemoryError: oh",
    "mypackage.errors.MyException: no",
    "node3:17:42 [0] NCCL WARN Call to connect failed",
    "EI0006: Getting socket times out.",
    "[ERROR] HCCL(…): hccl comm init fail",
    "Segmentation fault (core dumped)",
    "error: unknown option",
  ]) {
    expect(pattern.test(text), text).toBe(true);
  }
  for (const text of ["epoch 3 loss 0.1", "checked for errors, found none", "EIO0006", "skilled"]) {
    expect(pattern.test(text), text).toBe(false);
  }
});

test("reports are no lines of the log, and do not shift those that are", () => {
  expect(
    ["::danlu progress 0.5", "::danlu metric loss=1", "::danlu nonsense", "danlu"].map(isReport),
  ).toEqual([true, true, false, false]);
  const buffer = new LogBuffer((each) => each.number % 2 === 0);
  buffer.open(page(10, 20, 20));
  expect(buffer.lines.map((each) => each.number)).toEqual([10, 12, 14, 16, 18]);
  expect(buffer.prepend(page(0, 10, 20))).toBe(5);
  buffer.follow([line(20), line(21), line(22)], "1!23");
  expect(buffer.lines.at(-1)?.number).toBe(22);
  expect(buffer.lines.length).toBe(12);
});
