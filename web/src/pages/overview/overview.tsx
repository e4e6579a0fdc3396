/** Is the cluster well, how long will I wait? */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { DeviceView, NodeView } from "../../api/client";
import { devices, jobCounts, nodes, someJobs } from "../../api/queries";
import { paths } from "../../app/paths";
import { deviceName, figure } from "../../format/amounts";
import { Answer, Loading } from "../../ui/answer";
import { Bar } from "../../ui/bar";
import { DEVICE_STATES, DeviceCell, DeviceMark } from "../../ui/device";
import { Page } from "../../ui/page";
import { Reason } from "../../ui/reason";
import { Lasting, When } from "../../ui/when";
import { type Sum, sums } from "./sums";

const UsageChart = lazy(async () => ({ default: (await import("./usage-chart")).UsageChart }));

const READINGS_EVERY_MS = 10_000;

export function Overview() {
  const { t } = useTranslation();
  const counts = useQuery(jobCounts({}));
  const allDevices = useQuery({ ...devices, refetchInterval: READINGS_EVERY_MS });
  const allNodes = useQuery(nodes);
  const failures = useQuery(someJobs({ state: "failed" }, 6));
  return (
    <Page title={t("nav.overview")} command="danlu devices">
      <Answer of={counts}>
        {(data) => {
          const of = (...words: string[]) => words.reduce((sum, word) => sum + (data.by_state[word] ?? 0), 0);
          return (
            <div className="stats">
              <Stat title={t("overview.running")} to={paths.jobs("?tab=running")}>
                {of("running", "starting", "stopping")}
              </Stat>
              <Stat title={t("overview.queued")} to={paths.jobs("?tab=waiting")}>
                {of("queued")}
              </Stat>
              <Stat title={t("overview.oldest")} to={paths.jobs("?tab=waiting")}>
                {data.oldest_queued_at ? <Lasting from={data.oldest_queued_at} /> : "–"}
              </Stat>
              <Stat title={t("overview.failed")} to={paths.jobs("?tab=failed")}>
                {of("failed")}
              </Stat>
            </div>
          );
        }}
      </Answer>
      <Answer of={allDevices}>
        {({ items }) => (
          <>
            <section className="panel stack">
              <h2>{t("overview.allocation")}</h2>
              {items.length === 0 ? <span className="muted">{t("overview.noDevices")}</span> : null}
              {sums(items, allNodes.data?.items ?? []).map((sum) => (
                <Allocation key={sum.model} sum={sum} />
              ))}
            </section>
            {items.length > 0 ? (
              <Suspense
                fallback={
                  <section className="panel chart">
                    <Loading />
                  </section>
                }
              >
                <UsageChart />
              </Suspense>
            ) : null}
            {items.length > 0 ? <Grid devices={items} nodes={allNodes.data?.items ?? []} /> : null}
          </>
        )}
      </Answer>
      <section className="panel">
        <h2>{t("overview.failures")}</h2>
        <Answer of={failures}>
          {({ items }) =>
            items.length === 0 ? (
              <span className="muted">{t("overview.noFailures")}</span>
            ) : (
              items.map((job) => (
                <div key={job.id} className="row" style={{ flexWrap: "nowrap" }}>
                  <Link to={paths.job(job.id)}>{job.name}</Link>
                  <span className="muted">{job.owner}</span>
                  <span
                    style={{ flex: 1, overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap" }}
                  >
                    <Reason reason={job.reason} />
                  </span>
                  {job.ended_at ? <When at={job.ended_at} /> : null}
                </div>
              ))
            )
          }
        </Answer>
      </section>
    </Page>
  );
}

function Stat({ title, to, children }: { title: string; to: string; children: React.ReactNode }) {
  return (
    <div className="stat">
      <b>{children}</b>
      <Link to={to}>{title}</Link>
    </div>
  );
}

function Allocation({ sum }: { sum: Sum }) {
  const { t } = useTranslation();
  const name = deviceName(sum.kind, sum.model);
  const label = t("overview.used", { used: figure(sum.used), total: sum.total });
  return (
    <div>
      <div className="row spread">
        <span>{name}</span>
        <span className="number">{label}</span>
      </div>
      <Bar
        label={`${name}: ${label}`}
        total={sum.total}
        parts={[
          { amount: sum.used, tone: "var(--running)", label: t("device.held") },
          { amount: sum.closed, tone: "var(--held)", label: t("device.closed") },
          { amount: sum.broken, tone: "var(--failed)", label: t("device.failed") },
        ]}
      />
    </div>
  );
}

/** A node is a row, a device a square. */
function Grid({ devices, nodes }: { devices: DeviceView[]; nodes: NodeView[] }) {
  const { t } = useTranslation();
  const cordoned = new Map(nodes.map((node) => [node.name, Boolean(node.cordoned)]));
  const rows = new Map<string, DeviceView[]>();
  for (const device of devices) rows.set(device.node, [...(rows.get(device.node) ?? []), device]);
  return (
    <section className="panel">
      <div className="row spread" style={{ marginBottom: 8 }}>
        <h2>{t("overview.grid")}</h2>
        <div className="legend">
          {DEVICE_STATES.map((state) => (
            <DeviceMark key={state} state={state} />
          ))}
        </div>
      </div>
      {[...rows].map(([node, list]) => (
        <div key={node} className="grid-row">
          <Link to={paths.node(node)} title={node}>
            {node}
          </Link>
          <div className="cells">
            {list.map((device) => (
              <DeviceCell key={device.index} device={device} isCordoned={cordoned.get(node) ?? false} />
            ))}
          </div>
        </div>
      ))}
    </section>
  );
}
