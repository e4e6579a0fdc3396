/** The state of a device, by colour and shape. */
import { Tooltip } from "antd";
import type { CSSProperties, ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import type { DeviceView } from "../api/client";
import { paths } from "../app/paths";

export const DEVICE_STATES = ["free", "held", "shared", "warning", "closed", "failed"] as const;
export type DeviceState = (typeof DEVICE_STATES)[number];

const LOOKS: Record<DeviceState, { tone: string; shape: ReactNode }> = {
  free: {
    tone: "var(--free)",
    shape: (
      <rect x="2" y="2" width="16" height="16" rx="3" fill="none" stroke="currentColor" strokeWidth="2" />
    ),
  },
  held: {
    tone: "var(--running)",
    shape: <rect x="1" y="1" width="18" height="18" rx="3" fill="currentColor" />,
  },
  shared: {
    tone: "var(--running)",
    shape: (
      <>
        <rect x="2" y="2" width="16" height="16" rx="3" fill="none" stroke="currentColor" strokeWidth="2" />
        <path d="M2 18L18 2v14a2 2 0 0 1-2 2z" fill="currentColor" />
      </>
    ),
  },
  warning: {
    tone: "var(--queued)",
    shape: (
      <path d="M10 2l8.5 16h-17z" fill="none" stroke="currentColor" strokeWidth="2" strokeLinejoin="round" />
    ),
  },
  closed: {
    tone: "var(--held)",
    shape: (
      <>
        <rect
          x="2"
          y="2"
          width="16"
          height="16"
          rx="3"
          fill="none"
          stroke="currentColor"
          strokeWidth="2"
          strokeDasharray="3 2"
        />
        <path d="M6 10h8" stroke="currentColor" strokeWidth="2" />
      </>
    ),
  },
  failed: {
    tone: "var(--failed)",
    shape: (
      <>
        <rect x="2" y="2" width="16" height="16" rx="3" fill="none" stroke="currentColor" strokeWidth="2" />
        <path d="M6 6l8 8M14 6l-8 8" stroke="currentColor" strokeWidth="2" />
      </>
    ),
  },
};

/** What a device is to whoever looks for one. */
export function deviceState(device: DeviceView, isCordoned: boolean): DeviceState {
  if (device.out_of_service || device.health === "failed" || device.health === "unknown") return "failed";
  if (device.held_by) return (device.held_by.count ?? 1) < 1 ? "shared" : "held";
  if (device.foreign) return "held";
  if (isCordoned) return "closed";
  return device.health === "warning" ? "warning" : "free";
}

const toneOf = (state: DeviceState) => ({ "--tone": LOOKS[state].tone }) as CSSProperties;

function Shape({ state }: { state: DeviceState }) {
  return (
    <svg viewBox="0 0 20 20" aria-hidden="true">
      {LOOKS[state].shape}
    </svg>
  );
}

export function DeviceMark({ state }: { state: DeviceState }) {
  const { t } = useTranslation();
  return (
    <span className="state" style={{ ...toneOf(state), color: "var(--text)" }}>
      <span style={{ color: LOOKS[state].tone, display: "inline-flex" }}>
        <Shape state={state} />
      </span>
      {t(`device.${state}`)}
    </span>
  );
}

/** One square of the grid. Those that somebody holds lead to the job. */
export function DeviceCell({ device, isCordoned }: { device: DeviceView; isCordoned: boolean }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const state = deviceState(device, isCordoned);
  const { held_by: holder, reading } = device;
  const lines = [
    `${device.index} · ${device.model} · ${t(`device.${state}`)}`,
    holder ? (holder.job ? `${holder.job_name} (${holder.job}) · ${holder.owner}` : t("device.hidden")) : "",
    device.foreign ? t("device.foreign", { ...device.foreign, context: device.foreign.kind }) : "",
    reading?.utilisation_percent === undefined || reading.utilisation_percent === null
      ? ""
      : `${reading.utilisation_percent} %`,
    device.out_of_service ?? "",
  ].filter(Boolean);
  return (
    <Tooltip title={lines.map((line) => <div key={line}>{line}</div>)}>
      <button
        type="button"
        className="cell"
        style={{ ...toneOf(state), cursor: holder?.job ? "pointer" : "default" }}
        aria-label={lines.join(", ")}
        onClick={() => holder?.job && navigate(paths.job(holder.job))}
      >
        <Shape state={state} />
      </button>
    </Tooltip>
  );
}
