/** What the job wrote. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { JobView } from "../../api/client";
import { files } from "../../api/queries";
import { useAddress } from "../../app/address";
import { useObstacle } from "../../app/session";
import { bytes } from "../../format/amounts";
import { Answer } from "../../ui/answer";
import { SmallSelect } from "../../ui/controls";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";

const AREAS = ["output", "checkpoint", "work"] as const;

export function Files({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const { query, set, with: address } = useAddress();
  const notYours = useObstacle().changeJob(job);
  const area = AREAS.find((one) => one === query.get("area")) ?? "output";
  const path = query.get("path") ?? "";
  const worker = Number(query.get("worker") ?? 0);
  const where = { area, path, ...(area === "work" ? { worker } : {}) };
  const list = useQuery({ ...files(job.id, where), enabled: !notYours, retry: false });
  if (notYours) return <div className="note">{notYours}</div>;
  const inside = (name: string) => (path ? `${path}/${name}` : name);
  const content = (name: string) => {
    const asked = new URLSearchParams({ area, path: inside(name) });
    if (area === "work") asked.set("worker", String(worker));
    return `/api/v1/jobs/${job.id}/files/content?${asked}`;
  };
  return (
    <>
      <div className="log-tools">
        <SmallSelect
          label={t("files.area")}
          value={area}
          onChange={(value) => set({ area: value, path: undefined })}
          options={AREAS.map((value) => ({ value, label: t(`files.${value}`) }))}
        />
        {area === "work" ? (
          <SmallSelect
            label={t("job.worker")}
            value={String(worker)}
            onChange={(value) => set({ worker: value, path: undefined })}
            options={Array.from({ length: job.spec.workers ?? 1 }, (_, index) => ({
              value: String(index),
              label: t("metrics.worker", { number: index }),
            }))}
          />
        ) : null}
        <nav aria-label={t("files.path")} className="row" style={{ gap: 4 }}>
          <Link to={address({ path: undefined }) || "?"}>{t(`files.${area}`)}</Link>
          {path
            .split("/")
            .filter(Boolean)
            .map((name, index, parts) => (
              <span key={parts.slice(0, index + 1).join("/")}>
                {"/ "}
                <Link to={address({ path: parts.slice(0, index + 1).join("/") })}>{name}</Link>
              </span>
            ))}
        </nav>
      </div>
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("job.tab.files")}
            rows={items}
            rowKey={(entry) => entry.name}
            empty={<p>{t("files.none")}</p>}
            columns={[
              {
                key: "name",
                title: t("job.name"),
                render: (entry) =>
                  entry.kind === "folder" ? (
                    <Link to={address({ path: inside(entry.name) })}>{entry.name}/</Link>
                  ) : entry.kind === "file" ? (
                    <a href={content(entry.name)} download={entry.name}>
                      {entry.name}
                    </a>
                  ) : (
                    <span className="muted">{entry.name}</span>
                  ),
              },
              {
                key: "size",
                title: t("files.size"),
                width: 120,
                end: true,
                render: (entry) => (entry.kind === "file" ? bytes(entry.size) : "–"),
              },
              {
                key: "modified",
                title: t("files.modified"),
                width: 160,
                end: true,
                render: (entry) => <When at={entry.modified_at} />,
              },
            ]}
          />
        )}
      </Answer>
    </>
  );
}
