import { expect, test } from "vitest";
import type { JobSpec } from "../api/client";
import { bytes, bytesOf, coresOf, deviceName, figure, resources, wiringText } from "./amounts";
import { filled } from "./sentence";
import { duration, relative, spanSeconds } from "./time";

test("durations show their two largest units", () => {
  const shown = [0, 999, 42_000, 65_000, 3_600_000, 11_100_000, 180_000_000].map(duration);
  expect(shown).toEqual(["0 s", "0 s", "42 s", "1 min 5 s", "1 h", "3 h 5 min", "2 d 2 h"]);
});

test("times are told from now, in the language of the reader", () => {
  const now = Date.parse("2030-01-01T12:00:00Z");
  expect(relative("2030-01-01T11:57:00Z", now, "en")).toBe("3 min. ago");
  expect(relative("2030-01-01T14:00:00Z", now, "zh")).toBe("2 小时后");
});

test("spans of the API are read, and nothing else is", () => {
  expect(["1d12h", "90s", "1m30s", "500ms"].map(spanSeconds)).toEqual([129_600, 90, 90, 0.5]);
  expect(["", "soon", "1x", "1h x"].map(spanSeconds)).toEqual([undefined, undefined, undefined, undefined]);
});

test("resources are told as people say them", () => {
  const spec = (rest: Partial<JobSpec>) => resources({ command: "true", ...rest } as JobSpec);
  expect(spec({ workers: 2, devices: { count: 8, kind: "ascend", model: "910B3" } })).toBe(
    "2 × 8 Ascend 910B3",
  );
  expect(spec({ cpus: "4" })).toBe("4 CPU");
  expect(
    spec({
      any_of: [
        { count: 8, kind: "nvidia", model: "A100*" },
        { count: 8, kind: "ascend" },
      ],
    }),
  ).toBe("8 NVIDIA A100* | 8 Ascend");
});

test("amounts are read and written", () => {
  expect(["64Gi", "1.5Gi", "12", "x"].map(bytesOf)).toEqual([64 * 1024 ** 3, 1.5 * 1024 ** 3, 12, undefined]);
  expect(["64GB", "1.5KB", "12B", 0].map(bytesOf)).toEqual([64e9, 1500, 12, 0]);
  expect(["500m", "8", "many"].map(coresOf)).toEqual([0.5, 8, undefined]);
  expect([0, 1023, 1536, 5 * 1024 ** 3].map(bytes)).toEqual(["0 B", "1023 B", "1.5 KiB", "5 GiB"]);
  expect([0.012345, 1.234, 12345.6].map(figure)).toEqual(["0.0123", "1.23", "12,346"]);
});

test("a sentence is said where all of its places are known", () => {
  const template = "behind job {{job}}, {{free}} free";
  expect(filled(template, { job: "7", free: "0" })).toBe("behind job 7, 0 free");
  expect(filled(template, { job: "7" })).toBeUndefined();
  expect(filled("", {})).toBeUndefined();
});

test("a device has its maker's name once", () => {
  expect(deviceName("ascend", "910B3")).toBe("Ascend 910B3");
  expect(deviceName("ascend", "Ascend910")).toBe("Ascend910");
  expect(deviceName("nvidia", "nvidia L40S")).toBe("nvidia L40S");
  expect(deviceName("nvidia", null)).toBe("NVIDIA");
  expect(deviceName(null, null)).toBe("");
});

test("how a device is wired is told as far as its machine says", () => {
  expect(wiringText({ bus: "0000:9d:00.0", card: 7, chip: 1, physical: 15 })).toBe("0000:9d:00.0 · 7.1 · 15");
  expect(wiringText({ bus: "0000:9d:00.0" })).toBe("0000:9d:00.0 · – · –");
  expect(wiringText({ card: 0, chip: 0 })).toBe("– · 0.0 · –");
  expect(wiringText({})).toBe("–");
});
