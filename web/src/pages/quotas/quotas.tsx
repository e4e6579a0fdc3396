/** Who uses what they were promised? */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { QuotaView, WorkspaceView } from "../../api/client";
import { quota, workspaces } from "../../api/queries";
import { paths } from "../../app/paths";
import { roleIn, useMe, useObstacle } from "../../app/session";
import { bytes, figure, kindName } from "../../format/amounts";
import { Answer } from "../../ui/answer";
import { Bar } from "../../ui/bar";
import { Button } from "../../ui/controls";
import { Page } from "../../ui/page";
import { When } from "../../ui/when";
import { EditQuota } from "./edit";

type Resource = QuotaView["resource"];

const shown = (resource: Resource, value: number) => (resource === "memory" ? bytes(value) : figure(value));

/** Whether there is anything to say: nothing promised, nothing limited and nothing used is no line. */
export const matters = (line: QuotaView): boolean =>
  line.used > 0 || line.guaranteed > 0 || (line.limit !== undefined && line.limit !== null);

export function Quotas() {
  const { t } = useTranslation();
  const all = useQuery(workspaces);
  const lines = useQuery({ ...quota, refetchInterval: 10_000 });
  const obstacle = useObstacle().admin;
  const [edited, setEdited] = useState<WorkspaceView | "new">();
  return (
    <Page
      title={t("nav.quotas")}
      command="danlu quota"
      actions={
        <Button small blocked={obstacle} onClick={() => setEdited("new")}>
          {t("quotas.new")}
        </Button>
      }
    >
      {edited ? (
        <EditQuota workspace={edited === "new" ? undefined : edited} onDone={() => setEdited(undefined)} />
      ) : null}
      <Answer of={all}>
        {({ items }) =>
          items.length === 0 ? (
            <div className="note">{t("quotas.none")}</div>
          ) : (
            <div className="columns" style={{ gridTemplateColumns: "repeat(auto-fit, minmax(420px, 1fr))" }}>
              {items.map((workspace) => (
                <Workspace
                  key={workspace.name}
                  name={workspace.name}
                  lines={(lines.data?.items ?? []).filter((line) => line.workspace === workspace.name)}
                  obstacle={obstacle}
                  onEdit={() => setEdited(workspace)}
                />
              ))}
            </div>
          )
        }
      </Answer>
    </Page>
  );
}

type WorkspaceProps = { name: string; lines: QuotaView[]; obstacle: string | undefined; onEdit: () => void };

function Workspace({ name, lines, obstacle, onEdit }: WorkspaceProps) {
  const { t } = useTranslation();
  const role = roleIn(useMe(), name);
  const important = lines.filter(matters);
  return (
    <section className="panel stack" aria-label={name}>
      <div className="row spread">
        <h2>{name}</h2>
        <div className="row">
          <Link to={paths.jobs(`?workspace=${encodeURIComponent(name)}`)}>{t("nav.jobs")}</Link>
          {role ? <Link to={paths.members(name)}>{t("nav.members")}</Link> : null}
          <Button small blocked={obstacle} onClick={onEdit} label={t("quotas.editOf", { name })}>
            {t("quotas.edit")}
          </Button>
        </div>
      </div>
      {important.length === 0 ? <span className="muted">{t("quotas.idle")}</span> : null}
      {important.map((line) => (
        <Line key={line.resource} line={line} />
      ))}
    </section>
  );
}

function Line({ line }: { line: QuotaView }) {
  const { t } = useTranslation();
  const { resource, used, guaranteed, limit, borrowed, lent, broken } = line;
  const text = [
    t("quotas.used", { amount: shown(resource, used) }),
    t("quotas.guaranteed", { amount: shown(resource, guaranteed) }),
    limit === undefined || limit === null ? "" : t("quotas.limit", { amount: shown(resource, limit) }),
    borrowed > 0 ? t("quotas.borrowed", { amount: shown(resource, borrowed) }) : "",
    lent > 0 ? t("quotas.lent", { amount: shown(resource, lent) }) : "",
    broken > 0 ? t("quotas.broken", { amount: shown(resource, broken) }) : "",
  ].filter(Boolean);
  const name = resource === "ascend" || resource === "nvidia" ? kindName(resource) : t(`spec.${resource}`);
  return (
    <div title={line.text}>
      <div className="row spread">
        <span>{name}</span>
        <span className="muted number">{text.join(" · ")}</span>
      </div>
      <Bar
        label={`${name}: ${text.join(", ")}`}
        total={limit ?? Math.max(guaranteed, used + line.free)}
        parts={[
          { amount: used - borrowed, tone: "var(--running)", label: t("quotas.own") },
          { amount: borrowed, tone: "var(--queued)", label: t("quotas.borrowedWord") },
          { amount: lent, tone: "var(--stopping)", label: t("quotas.lentWord") },
          { amount: broken, tone: "var(--failed)", label: t("quotas.brokenWord") },
          {
            amount: Math.max(0, guaranteed - used - lent - broken),
            tone: "var(--free)",
            label: t("quotas.unused"),
          },
        ]}
      />
      <div className="row muted" style={{ gap: 14 }}>
        {(line.users ?? []).map((user) => (
          <span key={user.user}>
            {user.user} <span className="number">{shown(resource, user.used)}</span>
          </span>
        ))}
      </div>
      {(line.loans ?? []).map((loan) => (
        <div key={loan.workspace} className="muted">
          {t("quotas.loan", { workspace: loan.workspace, amount: shown(resource, loan.amount) })}
          {loan.on_demand_from ? (
            <>
              {" · "}
              {t("quotas.backFrom")} <When at={loan.on_demand_from} />
            </>
          ) : null}
        </div>
      ))}
    </div>
  );
}
