import { expect, test } from "vitest";
import type { JobSpec } from "../../api/client";
import { commandOf, likeJob, read, textOf, withField, withOffer } from "./draft";

test("fields are set and taken away by dotted names", () => {
  const draft = withField({ command: "true" }, "devices.count", 4);
  expect(draft).toEqual({ command: "true", devices: { count: 4 } });
  expect(withField(draft, "devices.count", undefined)).toEqual({ command: "true" });
});

test("an offer changes what it names, with values as the command line takes them", () => {
  const draft = { command: "true", workers: 2, devices: { kind: "ascend" as const, count: 8 } };
  expect(withOffer(draft, { "devices.count": "4", preemptible: "true" })).toEqual({
    ...draft,
    devices: { kind: "ascend", count: 4 },
    preemptible: true,
  });
});

test("the text and the draft are the same thing", () => {
  const draft = { name: "x", command: "echo 'a'\necho b", env: { A: "1" } };
  expect(read(textOf(draft))).toEqual({ draft });
  expect(read("- a list")).toHaveProperty("error");
  expect(read("a: [")).toHaveProperty("error");
});

test("the command submits the same, or names a file where flags do not reach", () => {
  const draft = {
    name: "x y",
    workers: 2,
    devices: { kind: "ascend" as const, model: "910B*", count: 8 },
    command: "python a.py --n 'b'",
  };
  expect(commandOf(draft)).toBe(
    "danlu submit --name 'x y' --workers 2 --devices 'ascend:910B*:8' -- sh -c 'python a.py --n '\\''b'\\'''",
  );
  expect(commandOf({ ...draft, checkpoint: "./ckpt" })).toBe("danlu submit job.yaml");
});

test("a copy of a job leaves out what nobody wrote", () => {
  const spec = { command: "true", image: "host", priority: 5, workers: 2, preemptible: false } as JobSpec;
  expect(likeJob(spec)).toEqual({ command: "true", workers: 2 });
});
