/** Why is it so; what do the logs say? */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import type { JobView } from "../../api/client";
import { job as jobQuery } from "../../api/queries";
import { JOB_TABS, type JobTab, paths } from "../../app/paths";
import { resources } from "../../format/amounts";
import { Answer, Loading } from "../../ui/answer";
import { Page, Tabs } from "../../ui/page";
import { Reason } from "../../ui/reason";
import { State, stateOf } from "../../ui/state";
import { Actions } from "./actions";
import { Events } from "./events";
import { Files } from "./files";
import { LastLine } from "./last-line";
import { JobOverview } from "./overview";
import { Ranks } from "./ranks";
import { Spec } from "./spec";
import { Timeline } from "./timeline-view";

const loadLogs = () => import("../../logs/logs");
const Logs = lazy(async () => ({ default: (await loadLogs()).Logs }));
const Metrics = lazy(async () => ({ default: (await import("./metrics")).Metrics }));
const Terminal = lazy(async () => ({ default: (await import("./terminal")).Terminal }));

const VIEWS: Record<JobTab, React.ComponentType<{ job: JobView }>> = {
  overview: JobOverview,
  logs: Logs,
  metrics: Metrics,
  ranks: Ranks,
  events: Events,
  files: Files,
  spec: Spec,
  terminal: Terminal,
};

/** The command that shows the same as the tab. */
function command(id: number, tab: JobTab): string {
  const commands: Record<JobTab, string> = {
    overview: `danlu show ${id}`,
    logs: `danlu logs -f ${id}`,
    metrics: `danlu metrics ${id}`,
    ranks: `danlu show ${id}`,
    events: `danlu events ${id}`,
    files: `danlu files ${id}`,
    spec: `danlu show ${id} --json`,
    terminal: `danlu exec -it ${id} -- bash`,
  };
  return commands[tab];
}

export function Job() {
  const { t } = useTranslation();
  const params = useParams();
  const id = Number(params.id);
  const tab = JOB_TABS.find((one) => one === params.tab) ?? "overview";
  const query = useQuery(jobQuery(id));
  const fills = tab === "logs" || tab === "terminal";
  // Most who look at a job look at its log next: its code is there by then.
  useEffect(() => {
    void loadLogs();
  }, []);
  return (
    <Page
      title={query.data ? `${query.data.name} (${id})` : t("job.title", { id })}
      heading={<Heading id={id} job={query.data} />}
      actions={query.data ? <Actions job={query.data} /> : null}
      command={command(id, tab)}
      fixed={fills}
    >
      <Answer of={query}>
        {(job) => {
          const View = VIEWS[tab];
          return (
            <>
              <Timeline job={job} />
              {tab === "logs" ? null : <LastLine job={job} />}
              <Tabs
                label={t("job.tabs")}
                links={JOB_TABS.map((one) => ({
                  to: paths.job(id, one),
                  isCurrent: one === tab,
                  title: t(`job.tab.${one}`),
                }))}
              />
              <Suspense fallback={<Loading />}>
                <View job={job} />
              </Suspense>
            </>
          );
        }}
      </Answer>
    </Page>
  );
}

function Heading({ id, job }: { id: number; job: JobView | undefined }) {
  const { t } = useTranslation();
  return (
    <div>
      <div className="row">
        <h1>{job?.name ?? id}</h1>
        <span className="muted number">{id}</span>
        {job ? (
          <span role="status" aria-label={t("job.state")}>
            <State state={stateOf(job)} />
          </span>
        ) : null}
      </div>
      {job ? (
        <div className="muted">
          {resources(job.spec)} · {job.owner} / {job.workspace} · <Reason reason={job.reason} />
        </div>
      ) : null}
    </div>
  );
}
