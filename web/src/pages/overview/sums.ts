/** Sums over devices, for the overview and for nodes. */
import type { DeviceView, NodeView } from "../../api/client";
import { deviceState } from "../../ui/device";

export type Sum = {
  kind: string;
  model: string;
  total: number;
  used: number;
  broken: number;
  closed: number;
};

/** One for each model, largest first. */
export function sums(devices: DeviceView[], nodes: NodeView[]): Sum[] {
  const cordoned = new Set(nodes.filter((node) => node.cordoned).map((node) => node.name));
  const byModel = new Map<string, Sum>();
  for (const device of devices) {
    const key = `${device.kind} ${device.model}`;
    const sum = byModel.get(key) ?? {
      kind: device.kind,
      model: device.model,
      total: 0,
      used: 0,
      broken: 0,
      closed: 0,
    };
    const state = deviceState(device, cordoned.has(device.node));
    sum.total += 1;
    if (state === "held") sum.used += 1;
    if (state === "shared") sum.used += device.held_by?.count ?? 1;
    if (state === "failed") sum.broken += 1;
    if (state === "closed") sum.closed += 1;
    byModel.set(key, sum);
  }
  return [...byModel.values()].sort((one, other) => other.total - one.total);
}
