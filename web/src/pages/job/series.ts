/** Samples and metrics as lines of charts; pure, so that it can be tested. */
import type { DeviceUse, MetricPoint, Sample } from "../../api/client";
import type { Line } from "../../ui/chart";

export type Series = { x: number[]; lines: Line[] };

const seconds = (at: string): number => Date.parse(at) / 1000;

/** One line for each device, by its number on the node. */
export function deviceSeries(samples: Sample[], value: keyof DeviceUse): Series {
  const devices = [...new Set(samples.flatMap((sample) => Object.keys(sample.devices ?? {})))].sort(
    (one, other) => Number(one) - Number(other),
  );
  return {
    x: samples.map((sample) => seconds(sample.at)),
    lines: devices.map((device) => ({
      label: device,
      values: samples.map((sample) => sample.devices?.[device]?.[value] ?? null),
    })),
  };
}

type HostValue = "cores" | "memory" | "read" | "written" | "received" | "sent";

export function hostSeries(samples: Sample[], values: Partial<Record<HostValue, string>>): Series {
  return {
    x: samples.map((sample) => seconds(sample.at)),
    lines: Object.entries(values).map(([name, label]) => ({
      label,
      values: samples.map((sample) => sample[name as HostValue] ?? null),
    })),
  };
}

export const isEmpty = (series: Series): boolean =>
  series.lines.every((line) => line.values.every((value) => value === null));

/** The names of what programs report, in the order in which they first did. */
export function metricNames(points: MetricPoint[]): string[] {
  return [...new Set(points.flatMap((point) => Object.keys(point.values)))];
}

/** Steps where every point has one; seconds since the first point where not. */
function places(points: MetricPoint[]): Map<number, MetricPoint> {
  const hasSteps = points.every((point) => point.step !== undefined && point.step !== null);
  const first = points[0] ? seconds(points[0].at) : 0;
  return new Map(
    points.map((point) => [hasSteps ? Number(point.step) : Math.round(seconds(point.at) - first), point]),
  );
}

/** One metric of several jobs over the same steps; the first is the one looked at. */
export function metricSeries(name: string, jobs: { label: string; points: MetricPoint[] }[]): Series {
  const maps = jobs.map(({ points }) =>
    places(points.filter((point) => name in point.values && point.rank === firstRank(points))),
  );
  const x = [...new Set(maps.flatMap((map) => [...map.keys()]))].sort((one, other) => one - other);
  return {
    x,
    lines: jobs.map(({ label }, index) => ({
      label,
      isFaint: index > 0,
      values: x.map((place) => maps[index]?.get(place)?.values[name] ?? null),
    })),
  };
}

/** Ranks say much the same; the first that says anything speaks for its worker. */
function firstRank(points: MetricPoint[]): number {
  return points.reduce((least, point) => Math.min(least, point.rank), Number.POSITIVE_INFINITY);
}
