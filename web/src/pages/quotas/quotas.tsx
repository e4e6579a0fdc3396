/** Who uses what they were promised? */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { WorkspaceView } from "../../api/client";
import { workspaces } from "../../api/queries";
import { paths } from "../../app/paths";
import { bytes, bytesOf, coresOf, figure, kindName } from "../../format/amounts";
import { Answer } from "../../ui/answer";
import { Bar } from "../../ui/bar";
import { Page } from "../../ui/page";

export const RESOURCES = ["ascend", "nvidia", "cpus", "memory"] as const;
export type Resource = (typeof RESOURCES)[number];

type Amount = { used: number; guaranteed: number; limit: number | undefined; borrowed: number; lent: number };

const READ: Record<Resource, (value: unknown) => number | undefined> = {
  ascend: (value) => (typeof value === "number" ? value : undefined),
  nvidia: (value) => (typeof value === "number" ? value : undefined),
  cpus: (value) => (typeof value === "string" ? coresOf(value) : undefined),
  memory: (value) => (typeof value === "string" ? bytesOf(value) : undefined),
};

/** Where a workspace stands with one resource; nothing where neither it nor its settings speak of it. */
export function amount(workspace: WorkspaceView, resource: Resource): Amount | undefined {
  const read = READ[resource];
  const used = read(workspace.used[resource]) ?? 0;
  const guaranteed = read(workspace.guaranteed[resource]) ?? 0;
  const limit = read(workspace.limit[resource]);
  if (used === 0 && guaranteed === 0 && limit === undefined) return undefined;
  const borrowed = read(workspace.borrowed[resource]) ?? 0;
  const lent = read(workspace.lent[resource]) ?? 0;
  return { used, guaranteed, limit, borrowed, lent };
}

const shown = (resource: Resource, value: number) => (resource === "memory" ? bytes(value) : figure(value));

export function Quotas() {
  const { t } = useTranslation();
  const all = useQuery(workspaces);
  return (
    <Page title={t("nav.quotas")} command="danlu workspaces">
      <Answer of={all}>
        {({ items }) =>
          items.length === 0 ? (
            <div className="note">{t("quotas.none")}</div>
          ) : (
            <div className="columns">
              {items.map((workspace) => (
                <Workspace key={workspace.name} workspace={workspace} />
              ))}
            </div>
          )
        }
      </Answer>
    </Page>
  );
}

function Workspace({ workspace }: { workspace: WorkspaceView }) {
  const { t } = useTranslation();
  const lines = RESOURCES.flatMap((resource) => {
    const found = amount(workspace, resource);
    return found ? [{ resource, ...found }] : [];
  });
  return (
    <section className="panel stack" aria-label={workspace.name}>
      <div className="row spread">
        <h2>{workspace.name}</h2>
        <Link to={paths.jobs(`?workspace=${encodeURIComponent(workspace.name)}`)}>{t("nav.jobs")}</Link>
      </div>
      {lines.length === 0 ? <span className="muted">{t("quotas.idle")}</span> : null}
      {lines.map(({ resource, used, guaranteed, limit, borrowed, lent }) => {
        const text = [
          t("quotas.used", { amount: shown(resource, used) }),
          t("quotas.guaranteed", { amount: shown(resource, guaranteed) }),
          limit === undefined ? "" : t("quotas.limit", { amount: shown(resource, limit) }),
          borrowed > 0 ? t("quotas.borrowed", { amount: shown(resource, borrowed) }) : "",
          lent > 0 ? t("quotas.lent", { amount: shown(resource, lent) }) : "",
        ].filter(Boolean);
        const name =
          resource === "ascend" || resource === "nvidia" ? kindName(resource) : t(`spec.${resource}`);
        return (
          <div key={resource}>
            <div className="row spread">
              <span>{name}</span>
              <span className="muted number">{text.join(" · ")}</span>
            </div>
            <Bar
              label={`${name}: ${text.join(", ")}`}
              total={limit ?? Math.max(guaranteed, used)}
              parts={[
                { amount: used - borrowed, tone: "var(--running)", label: t("quotas.own") },
                { amount: borrowed, tone: "var(--queued)", label: t("quotas.borrowedWord") },
                { amount: lent, tone: "var(--stopping)", label: t("quotas.lentWord") },
                {
                  amount: Math.max(0, guaranteed - used - lent),
                  tone: "var(--free)",
                  label: t("quotas.unused"),
                },
              ]}
            />
          </div>
        );
      })}
    </section>
  );
}
