/** Amounts of devices, memory and processors for people. */
import type { DeviceView, JobSpec } from "../api/client";

const KINDS: Record<string, string> = { nvidia: "NVIDIA", ascend: "Ascend" };

export function kindName(kind: string | null | undefined): string {
  return kind ? (KINDS[kind] ?? kind) : "";
}

/** "Ascend 910B3", with the maker once: some models have it in their names, as the "Ascend910" of an A3. */
export function deviceName(kind: string | null | undefined, model: string | null | undefined): string {
  const maker = kindName(kind);
  if (model?.toLowerCase().startsWith(maker.toLowerCase())) return model;
  return [maker, model].filter(Boolean).join(" ");
}

type Wiring = NonNullable<DeviceView["wiring"]>;

/** "0000:9d:00.0 · 7.1 · 15": where a device is on the bus, its card and chip, and the number in `/dev/davinciN`. */
export function wiringText({ bus, card, chip, physical }: Wiring): string {
  const [first, second] = [card ?? "–", chip ?? "–"];
  const place = card === undefined && chip === undefined ? undefined : `${first}.${second}`;
  return [bus, place, physical].some((part) => part !== undefined && part !== null)
    ? [bus, place, physical].map((part) => part ?? "–").join(" · ")
    : "–";
}

type Devices = { count: number; kind?: string | null; model?: string | null };

function devices(request: Devices): string {
  return [String(request.count), deviceName(request.kind, request.model)].filter(Boolean).join(" ");
}

/** "2 × 8 Ascend 910B3"; processors where no devices are asked for. */
export function resources(spec: JobSpec): string {
  const workers = spec.workers ?? 1;
  const asked: Devices[] = spec.any_of?.length ? spec.any_of : spec.devices ? [spec.devices] : [];
  const some = asked.filter((request) => request.count > 0);
  const each = some.length > 0 ? some.map(devices).join(" | ") : `${spec.cpus ?? "1"} CPU`;
  return workers > 1 ? `${workers} × ${each}` : each;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(amount: number): string {
  let unit = 0;
  let value = amount;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[unit]}`;
}

/** `64Gi` or `64GB` as the API writes it, in bytes; undefined for what is not an amount. The API accepts 0 as a number, too. */
export function bytesOf(text: string | number): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(?:([KMGTP])(i|B)|B)?$/.exec(String(text));
  if (!match) return undefined;
  const power = match[2] ? "KMGTP".indexOf(match[2]) + 1 : 0;
  return Number(match[1]) * (match[3] === "B" ? 1000 : 1024) ** power;
}

/** `500m` or `8`, in cores. */
export function coresOf(text: string | number): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(m)?$/.exec(String(text));
  return match ? Number(match[1]) / (match[2] ? 1000 : 1) : undefined;
}

/** Up to three digits that matter: 0.0123, 1.23, 12.3, 123, 12,345. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
