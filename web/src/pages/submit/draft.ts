/** A job file in the making: changes by dotted names, as text, and as the command that submits the same. Pure. */
import { parse, stringify } from "yaml";
import type { JobSpec } from "../../api/client";
import { quoted } from "../../ui/command";

export type Draft = Record<string, unknown> & Partial<JobSpec>;

/** With one field changed; `undefined` takes it away. */
export function withField(draft: Draft, field: string, value: unknown): Draft {
  const [head = "", ...rest] = field.split(".");
  const next: Draft = { ...draft };
  if (rest.length > 0) {
    const inner = withField((draft[head] ?? {}) as Draft, rest.join("."), value);
    if (Object.keys(inner).length > 0) next[head] = inner;
    else delete next[head];
  } else if (value === undefined || value === "") delete next[head];
  else next[head] = value;
  return next;
}

/** The changes of an offer: names and values as `--set` takes them. */
export function withOffer(draft: Draft, set: Record<string, string>): Draft {
  return Object.entries(set).reduce(
    (changed, [field, text]) => withField(changed, field, parse(text)),
    draft,
  );
}

export function textOf(draft: Draft): string {
  return stringify(draft, { lineWidth: 0 });
}

/** The draft that a text describes, or why it describes none. */
export function read(text: string): { draft: Draft } | { error: string } {
  try {
    const value: unknown = parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { draft: value as Draft };
    return { error: "invalid job file: expected fields such as `command: python train.py`" };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Flags of `danlu submit` for the fields that have one. */
const FLAGS: [string, string][] = [
  ["name", "--name"],
  ["workspace", "--workspace"],
  ["workers", "--workers"],
  ["cpus", "--cpus"],
  ["memory", "--memory"],
  ["shared_memory", "--shared-memory"],
  ["framework", "--framework"],
  ["ranks", "--ranks"],
  ["priority", "--priority"],
  ["max_time", "--max-time"],
];

/** The command that submits the same; a file where a line would not do. */
export function commandOf(draft: Draft): string {
  const known = new Set([...FLAGS.map(([field]) => field), "command", "devices", "preemptible", "env"]);
  if (Object.keys(draft).some((field) => !known.has(field))) return "danlu submit job.yaml";
  const words = ["danlu submit"];
  for (const [field, flag] of FLAGS) {
    const value = draft[field];
    if (value !== undefined) words.push(`${flag} ${quoted(String(value))}`);
  }
  const devices = draft.devices;
  if (devices && devices.count > 0) {
    words.push(`--devices ${quoted([devices.kind, devices.model, devices.count].filter(Boolean).join(":"))}`);
  }
  if (draft.preemptible) words.push("--preemptible");
  for (const [name, value] of Object.entries(draft.env ?? {}))
    words.push(`--env ${quoted(`${name}=${value}`)}`);
  words.push(`-- sh -c ${quoted(draft.command ?? "")}`);
  return words.join(" ");
}

/** What is left of a job's specification when defaults are left out: what a person would have written. */
export function likeJob(spec: JobSpec): Draft {
  const defaults: Record<string, unknown> = {
    image: "host",
    framework: "none",
    priority: 5,
    preemptible: false,
    grace: "30s",
    workers: 1,
    retry: { limit: 0, on: ["node_lost", "device_error", "start_failed"] },
    devices: { count: 0 },
  };
  return Object.fromEntries(
    Object.entries(spec).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(defaults[field]),
    ),
  ) as Draft;
}

export const TEMPLATES: Record<"script" | "pytorch" | "mindspore", Draft> = {
  script: { name: "hello", cpus: "1", command: "echo hello from $(hostname)" },
  pytorch: {
    name: "train",
    workers: 2,
    devices: { count: 8 },
    cpus: "8",
    framework: "pytorch",
    command: "python train.py",
  },
  mindspore: {
    name: "train",
    devices: { kind: "ascend", count: 8 },
    cpus: "8",
    framework: "mindspore",
    command: "python train.py",
  },
};

/** A training on one NPU that runs a migrated snapshot; the label is the one that `danlu submit --migrate` sets. */
export const migrated = (code: string, from: string, name: string): Draft => ({
  name:
    name
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, "-")
      .replace(/^-+|-+$/g, "") || "migrated",
  code,
  labels: { "migrated-from": from },
  devices: { kind: "ascend", count: 1 },
  cpus: "8",
  framework: "pytorch",
  command: "python train.py",
});
