/** Which device is ill, what runs there? */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { NodeView } from "../../api/client";
import { devices, nodes } from "../../api/queries";
import { paths } from "../../app/paths";
import { bytes, bytesOf, coresOf, deviceName, figure } from "../../format/amounts";
import { Answer } from "../../ui/answer";
import { DeviceCell } from "../../ui/device";
import { Page } from "../../ui/page";
import { Table } from "../../ui/table";

/** "8 × Ascend 910B3", for each model. */
export function models(node: NodeView): string {
  const counts = new Map<string, number>();
  for (const device of node.devices) {
    const name = deviceName(device.kind, device.model);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(", ") || "–";
}

export const used = {
  cpus: (node: NodeView) =>
    `${figure(coresOf(node.used_cpus) ?? 0)} / ${figure(coresOf(node.capacity.cpus) ?? 0)}`,
  memory: (node: NodeView) =>
    `${bytes(bytesOf(node.used_memory) ?? 0)} / ${bytes(bytesOf(node.capacity.memory) ?? 0)}`,
};

export function Nodes() {
  const { t } = useTranslation();
  const all = useQuery(nodes);
  const read = useQuery(devices);
  return (
    <Page title={t("nav.nodes")} command="danlu nodes">
      <Answer of={all}>
        {({ items }) => (
          <Table
            label={t("nav.nodes")}
            rows={items}
            rowKey={(node) => node.name}
            empty={<p>{t("nodes.none")}</p>}
            columns={[
              {
                key: "name",
                title: t("job.node"),
                width: "18%",
                render: (node) => (
                  <Link to={paths.node(node.name)} title={node.name}>
                    {node.name}
                  </Link>
                ),
              },
              {
                key: "state",
                title: t("nodes.state"),
                width: "13%",
                render: (node) =>
                  node.cordoned ? (
                    <span title={node.cordoned}>
                      {t("common.labelled", { label: t("nodes.cordoned"), value: node.cordoned })}
                    </span>
                  ) : (
                    t("nodes.open")
                  ),
              },
              { key: "models", title: t("nodes.model"), width: "16%", render: models },
              {
                key: "grid",
                title: t("overview.grid"),
                wrap: true,
                render: (node) => (
                  <span className="cells">
                    {(read.data?.items ?? [])
                      .filter((device) => device.node === node.name)
                      .map((device) => (
                        <DeviceCell key={device.index} device={device} isCordoned={Boolean(node.cordoned)} />
                      ))}
                  </span>
                ),
              },
              { key: "cpus", title: t("spec.cpus"), width: 96, end: true, render: used.cpus },
              { key: "memory", title: t("spec.memory"), width: 130, end: true, render: used.memory },
              {
                key: "architecture",
                title: t("nodes.architecture"),
                width: 104,
                render: (node) => node.architecture,
              },
            ]}
          />
        )}
      </Answer>
    </Page>
  );
}
