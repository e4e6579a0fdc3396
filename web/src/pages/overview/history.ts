/** How busy the cluster was, as lines of a chart. Pure. */
import type { UsagePoint } from "../../api/client";
import { deviceName } from "../../format/amounts";
import type { Line } from "../../ui/chart";

/** The part of each model that jobs held, in percent, and beside it how busy it was where its vendor's tools say. */
export function usageLines(points: UsagePoint[], busy: string): { x: number[]; lines: Line[] } {
  const models = [
    ...new Set(points.flatMap((point) => point.devices.map((device) => `${device.kind} ${device.model}`))),
  ];
  const of = (point: UsagePoint, model: string) =>
    point.devices.find((device) => `${device.kind} ${device.model}` === model);
  const lines = models.flatMap((model) => {
    const [kind, ...rest] = model.split(" ");
    const name = deviceName(kind, rest.join(" "));
    const held = points.map((point) => {
      const device = of(point, model);
      return device && device.usable > 0 ? (100 * device.held) / device.usable : null;
    });
    const used = points.map((point) => of(point, model)?.busy ?? null);
    const measured = used.some((value) => value !== null);
    return [
      { label: name, values: held },
      ...(measured ? [{ label: `${name} ${busy}`, values: used, isFaint: true }] : []),
    ];
  });
  return { x: points.map((point) => Date.parse(point.at) / 1000), lines };
}
