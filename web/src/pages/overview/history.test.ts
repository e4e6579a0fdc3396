import { expect, test } from "vitest";
import type { UsagePoint } from "../../api/client";
import { usageLines } from "./history";

const point = (second: number, held: number, busy?: number): UsagePoint => ({
  at: new Date(second * 1000).toISOString(),
  queued: 0,
  running: 1,
  devices: [{ kind: "ascend", model: "910B3", total: 8, usable: 8, held, busy }],
});

test("held devices are parts of those that work, and use is shown where it is known", () => {
  const { x, lines } = usageLines([point(60, 4), point(120, 8, 90)], "busy");
  expect(x).toEqual([60, 120]);
  expect(lines).toEqual([
    { label: "Ascend 910B3", values: [50, 100] },
    { label: "Ascend 910B3 busy", values: [null, 90], isFaint: true },
  ]);
  expect(usageLines([point(60, 4)], "busy").lines).toHaveLength(1);
});
