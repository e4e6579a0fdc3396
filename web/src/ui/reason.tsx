/** Why something is in its state, in the reader's language: by the server's code and parameters. */
import i18next, { t } from "i18next";
import type { Explanation, FailedWorker, Reason as ReasonOf, RequestedResources } from "../api/client";
import { kindName } from "../format/amounts";
import { filled } from "../format/sentence";
import { exact } from "../format/time";

type Offer = { text: string; set: Record<string, string> };
type Basis = NonNullable<NonNullable<Explanation["estimate"]>["basis"]>;

// The language is asked for and not listened to: what shows a reason is drawn again when it changes, and rows of long
// lists are made while one scrolls, where each hook costs.

/** A short phrase by the code alone; of a code that a newer server says, its English. */
export const reasonPhrase = (reason: ReasonOf): string =>
  t(`reason.${reason.code}`, { defaultValue: reason.text });

/** The sentence, and after it what the server adds in words of its own. */
export function reasonSentence(reason: ReasonOf): string {
  const [text, detail] = [sentence(reason), detailOf(reason)];
  return detail ? t("common.detailed", { text, detail }) : text;
}

/** What a program, a device or the cluster said is in no language of ours. */
function detailOf(reason: ReasonOf): string | undefined {
  const params = "params" in reason ? reason.params : undefined;
  return params && "detail" in params ? params.detail : undefined;
}

function sentence(reason: ReasonOf): string {
  switch (reason.code) {
    case "held":
      return t("said.held", { by: reason.params.by });
    case "needs_approval": {
      const { excess } = reason.params;
      return excess
        ? t("said.needs_approval", { ...excess, resource: resourceName(excess.resource) })
        : reasonPhrase(reason);
    }
    case "scheduling_pending": {
      const { cause } = reason.params;
      return cause.type === "approved" ? t("said.approved", { by: cause.by }) : reasonPhrase(reason);
    }
    case "devices_busy": {
      const { free, most_on_one_node: most, shortage } = reason.params;
      return t(`said.devices_${shortage}`, { requested: devices(reason.params.requested), free, most });
    }
    case "cpus_busy":
    case "memory_busy": {
      const { requested, most_on_one_node: most } = reason.params;
      return t(`said.${reason.code}`, { requested: resources(requested), most });
    }
    case "workspace_limit":
    case "user_limit":
      return t(`said.${reason.code}`, { ...reason.params, resource: resourceName(reason.params.resource) });
    case "guaranteed_to_others": {
      const resource = resourceName(reason.params.resource);
      return t(reason.params.lendable ? "said.guaranteed_lendable" : "said.guaranteed_to_others", {
        resource,
      });
    }
    case "avoiding_node":
      return t("said.avoiding_node", { node: reason.params.node, until: at(reason.params.until) });
    case "preempting": {
      const { jobs } = reason.params;
      return t("said.preempting", { count: jobs.length, jobs: jobs.join(", ") });
    }
    case "retry_backoff": {
      const { attempt, not_before, failure } = reason.params;
      const known = { attempt, until: at(not_before) };
      return failure
        ? t("said.retry_backoff_after", { ...known, failure: reasonSentence(failure) })
        : t("said.retry_backoff", known);
    }
    case "insufficient_capacity":
      return t("said.insufficient_capacity", { requested: resources(reason.params.requested) });
    case "nodes_cordoned": {
      const nodes = reason.params.nodes.map(({ node, reason: why }) =>
        t("common.detailed", { text: node, detail: why }),
      );
      return t("said.nodes_cordoned", {
        requested: resources(reason.params.requested),
        nodes: nodes.join(", "),
      });
    }
    case "requeued_by_cluster":
      return t("said.requeued_by_cluster", { until: at(reason.params.not_before) });
    case "slurm_pending": {
      const { slurm_job: job, cause, slurm_reason } = reason.params;
      const known = t(`slurm.${cause}`);
      const said =
        cause === "other" ? slurm_reason : t("common.detailed", { text: known, detail: slurm_reason });
      return t("said.slurm_pending", { job, cause: slurm_reason ? said : known });
    }
    case "running":
      return t("said.running", { count: reason.params.workers });
    case "slurm_suspended":
      return t("said.slurm_suspended", { job: reason.params.slurm_job });
    case "stopped":
      return reason.params.by ? t("said.stopped", { by: reason.params.by }) : reasonPhrase(reason);
    case "queued_behind":
    case "reserved":
    case "requeued_after_preemption":
    case "preempted":
      return t(`said.${reason.code}`, { job: reason.params.job });
    case "requeued_after_drain":
    case "node_trouble":
    case "drained":
      return t(`said.${reason.code}`, { node: reason.params.node });
    case "being_preempted":
      return t("said.being_preempted", { job: reason.params.job, grace: reason.params.grace });
    case "being_drained":
      return t("said.being_drained", { node: reason.params.node, grace: reason.params.grace });
    case "stop_requested":
      return t("said.stop_requested", { by: reason.params.by, grace: reason.params.grace });
    case "starting":
      return t("said.starting", { started: reason.params.started, workers: reason.params.workers });
    case "worker_failed":
      return t("said.worker_failed", { worker: reason.params.worker });
    case "exit":
    case "program_error":
    case "setup_failed":
    case "out_of_memory":
    case "time_limit":
    case "start_failed":
    case "gang_timeout":
    case "launcher_lost":
    case "node_lost":
    case "device_error":
    case "hang":
      return failureSentence(reasonPhrase(reason), reason.params);
    case "about_to_start":
    case "cluster_pending":
    case "cluster_unreachable":
    case "launch_delayed":
    case "launcher_stalled":
    case "seems_hung":
    case "being_requeued":
    case "requeued":
    case "succeeded":
      return reasonPhrase(reason);
    default:
      return newer(reason);
  }
}

/** Compiles only while every code is said above. A code of a newer server comes here, with its English. */
const newer = (reason: never): string => (reason as ReasonOf).text;

/** "program failed: rank 3 of worker 1, exit code 7". */
function failureSentence(failure: string, { worker, rank, exit }: FailedWorker): string {
  const parts = [ofWhat(worker, rank)];
  if (exit)
    parts.push(
      "code" in exit
        ? t("said.exit_code", { exit: exit.code })
        : t("said.exit_signal", { exit: exit.signal }),
    );
  const known = parts.filter(Boolean).join(t("said.comma"));
  return known ? t("said.failed", { failure, parts: known }) : failure;
}

function ofWhat(worker: FailedWorker["worker"], rank: FailedWorker["rank"]): string {
  if (typeof rank === "number" && typeof worker === "number") return t("said.of_both", { rank, worker });
  if (typeof rank === "number") return t("said.of_rank", { rank });
  return typeof worker === "number" ? t("said.of_worker", { worker }) : "";
}

const at = (time: string): string => exact(time, i18next.language);

const resourceName = (resource: string): string =>
  resource === "cpus" || resource === "memory" ? t(`spec.${resource}`) : kindName(resource);

function alternatives({ devices = [] }: RequestedResources): string {
  const each = devices.map(({ count, kind, model }) => {
    const name = [kindName(kind), model].filter(Boolean).join(" ");
    return t("requested.devices", { count: String(count), name }).trim();
  });
  return each.join(t("requested.or"));
}

const ofAll = (workers: number, each: string): string =>
  workers === 1 ? each : t("requested.workers", { workers, each });

/** "2 workers with 8 Ascend 910B* each". */
const devices = (requested: RequestedResources): string => ofAll(requested.workers, alternatives(requested));

/** "2 workers with 8 Ascend 910B*, 96 CPUs, 256Gi of memory each". */
function resources(requested: RequestedResources): string {
  const parts = [alternatives(requested), t("requested.cpus", { cpus: String(requested.cpus) })];
  if (requested.memory) parts.push(t("requested.memory", { memory: requested.memory }));
  return ofAll(requested.workers, parts.filter(Boolean).join(t("requested.and")));
}

/** What an estimate goes by, in the reader's language. */
export function basisSentence(basis: Basis): string {
  const counts = [
    ["why.basisPreemptions", basis.preemptions],
    ["why.basisTimeLimits", basis.time_limits],
    ["why.basisProgress", basis.progress],
    ["why.basisPastDurations", basis.past_durations],
    ["why.basisGuesses", basis.guesses],
  ] as const;
  const parts = counts.filter(([, count]) => count > 0).map(([key, count]) => t(key, { count }));
  return parts.length > 0 ? parts.join(t("why.and")) : t("why.basisNow");
}

/** A template of ours, not yet filled; empty where there is none. */
const template = (key: string): string =>
  t(key as "offer.workers", { defaultValue: "", skipInterpolation: true });

export function offerSentence({ text, set }: Offer): string {
  const parts = Object.entries(set).map(([field, value]) =>
    filled(template(`offer.${field.replace(".", "_")}`), { value }),
  );
  return parts.every((part) => part !== undefined) ? parts.join(", ") : text;
}

export function Reason({ reason }: { reason: ReasonOf }) {
  const text = reasonSentence(reason);
  return (
    <span className="muted" title={text}>
      {text}
    </span>
  );
}
