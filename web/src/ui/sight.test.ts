import { expect, test } from "vitest";
import { rowsInSight } from "./sight";

test("the rows in sight are drawn with some to spare, in groups", () => {
  const at = (top: number) => rowsInSight({ top, height: 700 }, 35, 10_000);
  expect(at(0)).toEqual({ first: 0, end: 32 });
  expect(at(35 * 1000)).toEqual({ first: 992, end: 1032 });
  expect(at(35 * 1003), "the same group, the same rows").toEqual(at(35 * 1000));
  expect(at(35 * 9_980).end, "no row is behind the last").toBe(10_000);
  expect(rowsInSight({ top: 0, height: 0 }, 35, 3)).toEqual({ first: 0, end: 3 });
  expect(rowsInSight({ top: 35_000, height: 700 }, 35, 3), "of what is gone, the end").toEqual({
    first: 0,
    end: 3,
  });
});
