import { expect, test } from "vitest";
import { isLong, staleKeys } from "./hints";

test("a hint makes stale what it is about, and lists a little later", () => {
  const hint = staleKeys({ kind: "job", id: "7", generation: 3 });
  expect(hint.now).toEqual([["job", 7]]);
  expect(hint.soon).toContainEqual(["jobs"]);
  expect(staleKeys({ kind: "of a later version", id: "1", generation: 1 })).toEqual({ now: [], soon: [] });
});

test("long lists are not asked for again at every change", () => {
  expect([{ pages: [1] }, { pages: [1, 2, 3, 4, 5, 6] }, { items: [] }, undefined].map(isLong)).toEqual([
    false,
    true,
    false,
    false,
  ]);
});
