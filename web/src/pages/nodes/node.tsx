import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { useNodeChange, useRestore } from "../../api/changes";
import type { DeviceView, NodeView } from "../../api/client";
import { devices, nodes } from "../../api/queries";
import { paths } from "../../app/paths";
import { useObstacle } from "../../app/session";
import { bytes, bytesOf, deviceName, wiringText } from "../../format/amounts";
import { Answer, Failure } from "../../ui/answer";
import { quoted } from "../../ui/command";
import { Button, Confirm, TextField } from "../../ui/controls";
import { DeviceMark, deviceState } from "../../ui/device";
import { Page } from "../../ui/page";
import { Table } from "../../ui/table";
import { Until } from "../../ui/when";
import { models, used } from "./nodes";

export function Node() {
  const { t } = useTranslation();
  const name = useParams().name ?? "";
  const all = useQuery(nodes);
  const read = useQuery({ ...devices, refetchInterval: 5000 });
  const node = all.data?.items.find((one) => one.name === name);
  const own = (read.data?.items ?? []).filter((device) => device.node === name);
  return (
    <Page
      title={name}
      command={`danlu devices --json | jq '.[] | select(.node == "${name}")'`}
      actions={node ? <NodeActions node={node} /> : null}
    >
      <Answer of={all}>
        {() =>
          node ? (
            <>
              <NodeFacts node={node} />
              <Devices node={node} devices={own} />
            </>
          ) : (
            <Failure error={new Error(t("nodes.unknown", { name: quoted(name) }))} />
          )
        }
      </Answer>
    </Page>
  );
}

function NodeFacts({ node }: { node: NodeView }) {
  const { t } = useTranslation();
  const facts: [string, React.ReactNode][] = [
    [
      t("nodes.state"),
      node.cordoned
        ? t("common.labelled", { label: t("nodes.cordoned"), value: node.cordoned })
        : t("nodes.open"),
    ],
    [t("job.devices"), [models(node), node.notice].filter(Boolean).join("; ")],
    [t("spec.cpus"), used.cpus(node)],
    [t("spec.memory"), used.memory(node)],
    [t("nodes.architecture"), node.architecture],
    [t("nodes.address"), node.address],
    [
      t("nodes.labels"),
      Object.entries(node.labels ?? {})
        .map(([key, value]) => `${key}=${value}`)
        .join(", ") || "–",
    ],
  ];
  return (
    <section className="panel">
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Closing a node says what it will affect before it does. */
function NodeActions({ node }: { node: NodeView }) {
  const { t } = useTranslation();
  const change = useNodeChange();
  const obstacle = useObstacle().admin;
  const [why, setWhy] = useState("");
  const jobs = new Map(node.held.map((held) => [held.job, held]));
  const reason = <TextField label={t("nodes.why")} value={why} onChange={setWhy} autoFocus />;
  if (node.cordoned) {
    return (
      <Button small blocked={obstacle} onClick={() => change.mutate({ name: node.name, verb: "uncordon" })}>
        {t("nodes.uncordon")}
      </Button>
    );
  }
  return (
    <>
      <Confirm
        small
        blocked={obstacle}
        title={t("nodes.cordonTitle", { name: node.name })}
        text={
          <>
            <p>{t("nodes.cordonText")}</p>
            {reason}
          </>
        }
        action={t("nodes.cordon")}
        onConfirm={() => change.mutateAsync({ name: node.name, verb: "cordon", why })}
      >
        {t("nodes.cordon")}
      </Confirm>
      <Confirm
        small
        kind="danger"
        blocked={obstacle}
        title={t("nodes.drainTitle", { name: node.name })}
        text={
          <>
            <p>{t("nodes.drainText", { count: jobs.size })}</p>
            <ul>
              {[...jobs.values()].map((held) => (
                <li key={held.job ?? held.job_name}>
                  {held.job_name} ({held.job}) · {held.owner}
                </li>
              ))}
            </ul>
            {reason}
          </>
        }
        action={t("nodes.drain")}
        onConfirm={() => change.mutateAsync({ name: node.name, verb: "drain", why })}
      >
        {t("nodes.drain")}
      </Confirm>
    </>
  );
}

/** A job that is none of Danlu's: there is no page of it. */
function Foreign({ hold }: { hold: NonNullable<DeviceView["foreign"]> }) {
  const { t } = useTranslation();
  return (
    <span>
      {t("device.foreign", { job: hold.job, name: hold.name, user: hold.user, context: hold.kind })}
      {hold.until ? (
        <>
          {" · "}
          {t("device.until")} <Until at={hold.until} />
        </>
      ) : null}
    </span>
  );
}

function Devices({ node, devices }: { node: NodeView; devices: DeviceView[] }) {
  const { t } = useTranslation();
  const restore = useRestore();
  const obstacle = useObstacle().admin;
  return (
    <Table
      label={t("job.devices")}
      rows={devices}
      rowKey={(device) => device.index}
      empty={<p>{t("overview.noDevices")}</p>}
      columns={[
        { key: "index", title: "#", width: 44, end: true, render: (device) => device.index },
        {
          key: "state",
          title: t("nodes.state"),
          width: 140,
          render: (device) => <DeviceMark state={deviceState(device, Boolean(node.cordoned))} />,
        },
        {
          key: "model",
          title: t("nodes.model"),
          width: 150,
          render: (device) => deviceName(device.kind, device.model),
        },
        {
          key: "wiring",
          title: t("nodes.wiring"),
          width: 190,
          from: "huge",
          render: (device) => <span className="number">{wiringText(device.wiring ?? {})}</span>,
        },
        {
          key: "job",
          title: t("nodes.holder"),
          render: (device) =>
            device.held_by && !device.held_by.job ? (
              t("device.hidden")
            ) : device.held_by?.job ? (
              <Link to={paths.job(device.held_by.job)}>
                {device.held_by.job_name} · {device.held_by.owner}
              </Link>
            ) : device.foreign ? (
              <Foreign hold={device.foreign} />
            ) : (
              (device.out_of_service ?? "–")
            ),
        },
        { key: "island", title: t("nodes.island"), width: 60, end: true, render: (device) => device.island },
        {
          key: "use",
          title: t("metrics.utilisation"),
          width: 90,
          end: true,
          render: (device) => percentOf(device.reading?.utilisation_percent),
        },
        {
          key: "memory",
          title: t("spec.memory"),
          width: 140,
          end: true,
          render: (device) => memoryOf(device),
        },
        {
          key: "heat",
          title: t("nodes.temperature"),
          width: 100,
          end: true,
          render: (device) => withUnit(device.reading?.temperature_celsius, "°C"),
        },
        {
          key: "power",
          title: t("nodes.power"),
          width: 80,
          end: true,
          render: (device) => withUnit(device.reading?.power_watts, "W"),
        },
        {
          key: "restore",
          title: <span className="visually-hidden">{t("nodes.restore")}</span>,
          width: 84,
          render: (device) =>
            device.out_of_service ? (
              <Button
                small
                blocked={obstacle}
                onClick={() => restore.mutate({ name: node.name, index: device.index })}
              >
                {t("nodes.restore")}
              </Button>
            ) : null,
        },
      ]}
    />
  );
}

const withUnit = (value: number | null | undefined, unit: string) =>
  value === null || value === undefined ? "–" : `${value} ${unit}`;
const percentOf = (value: number | null | undefined) => withUnit(value, "%");

/** Used and there; nothing of what nobody knows, such as the memory of devices that only a cluster's administrator has named. */
function memoryOf(device: DeviceView): string {
  const amounts = [device.reading?.memory_used, device.memory].map((text) => bytesOf(text ?? "") ?? 0);
  const known = amounts.filter((amount, place) => amount > 0 || (place === 0 && device.reading?.memory_used));
  return known.map(bytes).join(" / ") || "–";
}
