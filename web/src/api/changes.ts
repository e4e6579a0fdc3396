/** What people do to jobs, nodes and accounts. Each makes stale what it may have changed. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api, type JobSpec, type WorkspaceRules } from "./client";

/** A change, and the keys that it makes stale. */
function useChange<In, Out>(change: (input: In) => Promise<Out>, stale: string[]) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(stale.map((key) => client.invalidateQueries({ queryKey: [key] }))),
  });
}

const JOBS = ["job", "jobs", "nodes", "devices", "workspaces"];

export const useStop = () =>
  useChange(
    (id: number) => answer(api.POST("/jobs/{id}/stop", { params: { path: { id } }, body: {} })),
    JOBS,
  );

export const useHold = () =>
  useChange((id: number) => answer(api.POST("/jobs/{id}/hold", { params: { path: { id } } })), JOBS);

export const useRelease = () =>
  useChange((id: number) => answer(api.POST("/jobs/{id}/release", { params: { path: { id } } })), JOBS);

export const useDelete = () =>
  useChange((id: number) => answer(api.DELETE("/jobs/{id}", { params: { path: { id } } })), JOBS);

export const useSubmit = () =>
  useChange(({ spec, key }: { spec: JobSpec; key: string }) => {
    const request = api.POST("/jobs", { params: { header: { "Idempotency-Key": key } }, body: spec });
    return answer(request) as unknown as Promise<{ id: number }>;
  }, JOBS);

type NodeChange =
  | { name: string; verb: "cordon" | "drain"; why: string }
  | { name: string; verb: "uncordon" };

export const useNodeChange = () =>
  useChange(
    (change: NodeChange): Promise<unknown> => {
      const params = { path: { name: change.name } };
      switch (change.verb) {
        case "cordon":
          return answer(api.POST("/nodes/{name}/cordon", { params, body: { why: change.why } }));
        case "drain":
          return answer(api.POST("/nodes/{name}/drain", { params, body: { why: change.why } }));
        case "uncordon":
          return answer(api.POST("/nodes/{name}/uncordon", { params }));
      }
    },
    ["nodes", "devices", "jobs"],
  );

export const useRestore = () =>
  useChange(
    ({ name, index }: { name: string; index: number }) =>
      answer(api.POST("/nodes/{name}/devices/{index}/restore", { params: { path: { name, index } } })),
    ["nodes", "devices"],
  );

export const useAccountChange = () =>
  useChange(
    ({ name, ...body }: { name: string; standing?: "active" | "disabled"; admin?: boolean }) =>
      answer(api.PATCH("/accounts/{name}", { params: { path: { name } }, body })),
    ["accounts", "audit"],
  );

export const useAccountCreate = () =>
  useChange(
    (body: { name: string; email?: string | null }) => answer(api.POST("/accounts", { body })),
    ["accounts"],
  );

export const usePasswordLink = () =>
  useChange(
    (name: string) => answer(api.POST("/accounts/{name}/password_link", { params: { path: { name } } })),
    ["tokens"],
  );

export const useApprove = () =>
  useChange((id: number) => answer(api.POST("/jobs/{id}/approval", { params: { path: { id } } })), JOBS);

export const useWorkspaceSet = () =>
  useChange(
    ({ name, rules }: { name: string; rules: WorkspaceRules }) =>
      answer(api.PUT("/workspaces/{name}", { params: { path: { name } }, body: rules })),
    ["workspaces", "job", "jobs", "audit"],
  );

export const useRole = () =>
  useChange(
    ({
      name,
      account,
      role,
    }: {
      name: string;
      account: string;
      role: "viewer" | "member" | "owner" | null;
    }) => {
      const params = { path: { name, account } };
      const put = () =>
        answer(api.PUT("/workspaces/{name}/members/{account}", { params, body: { role: role ?? "viewer" } }));
      return role === null ? answer(api.DELETE("/workspaces/{name}/members/{account}", { params })) : put();
    },
    ["workspaces"],
  );

export const useTokenMake = () =>
  useChange(
    (body: { name: string; scope: "read" | "jobs" | "all"; lasts?: string }) =>
      answer(api.POST("/tokens", { body })),
    ["tokens"],
  );

export const useTokenRevoke = () =>
  useChange(
    ({ name, id }: { name: string; id: string }) =>
      answer(api.DELETE("/accounts/{name}/tokens/{id}", { params: { path: { name, id } } })),
    ["tokens"],
  );
