/** Who is signed in, and what that lets them do. The server decides; this only says so before one tries. */
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { JobView, Whoami } from "../api/client";
import { someJobs, whoami } from "../api/queries";

export function useMe(): Whoami {
  return useSuspenseQuery(whoami).data;
}

/** What one is to a workspace. Administrators answer for all of them. */
export function roleIn(me: Whoami, workspace: string): "viewer" | "member" | "owner" | undefined {
  const { account } = me;
  if (account.admin) return "owner";
  return account.workspaces.find((membership) => membership.workspace === workspace)?.role;
}

/** Whether one answers for a workspace. */
const answersFor = (me: Whoami, workspace: string): boolean => roleIn(me, workspace) === "owner";

/** Whether one may change a job: whoever submitted it, an owner of its workspace, an administrator. */
function mayChange(me: Whoami, job: Pick<JobView, "owner" | "workspace">): boolean {
  const { account } = me;
  return account.name === job.owner || account.name === job.workspace || answersFor(me, job.workspace);
}

/** Whether a job waits for one to approve it. */
const waitsFor = (me: Whoami, job: Pick<JobView, "reason" | "workspace">): boolean =>
  job.reason.code === "needs_approval" && answersFor(me, job.workspace);

/** How many jobs wait for one to approve them: of the first few hundred that are held. */
export function useApprovals(me: Whoami): number {
  const { admin, workspaces } = me.account;
  const isOwner = admin || workspaces.some((membership) => membership.role === "owner");
  const held = useQuery({ ...someJobs({ state: "held" }, MOST_HELD), enabled: isOwner });
  return held.data?.items.filter((job) => waitsFor(me, job)).length ?? 0;
}

const MOST_HELD = 200;

/** Why one may not change it, or nothing. */
export function useObstacle() {
  const me = useMe();
  const { t } = useTranslation();
  return {
    changeJob: (job: Pick<JobView, "owner" | "workspace">) =>
      mayChange(me, job) ? undefined : t("obstacle.notYours", { owner: job.owner }),
    approve: (job: Pick<JobView, "workspace">) =>
      answersFor(me, job.workspace) ? undefined : t("obstacle.approve"),
    admin: me.account.admin ? undefined : t("obstacle.admin"),
  };
}
