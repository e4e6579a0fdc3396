/** What people do to jobs, nodes and accounts. Each makes stale what it may have changed. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useContext } from "react";
import {
  answer,
  api,
  type JobSpec,
  type JobView,
  type MigrationRequest,
  type SharingRules,
  type WorkspaceRules,
} from "./client";
import { type Proof, ProofContext, proven } from "./proof";

/** A change, and the keys that it makes stale. */
function useChange<In, Out>(change: (input: In) => Promise<Out>, stale: string[]) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(stale.map((key) => client.invalidateQueries({ queryKey: [key] }))),
  });
}

/** A change that makes what does not end with the session: the server may ask for a proof of whose session it is. */
function useProvenChange<In, Out>(change: (input: In, proof?: Proof) => Promise<Out>, stale: string[]) {
  const ask = useContext(ProofContext);
  return useChange((input: In) => proven((proof) => change(input, proof), ask), stale);
}

const JOBS = ["job", "jobs", "nodes", "devices", "workspaces"];

export const useStop = () =>
  useChange(
    (id: number) => answer(api.POST("/jobs/{id}/stop", { params: { path: { id } }, body: {} })),
    JOBS,
  );

/** Changes a job that waits, which keeps its turn: a merge patch of what it asks for. */
export const useJobChange = () =>
  useChange(
    ({ id, patch }: { id: number; patch: Partial<JobSpec> }) =>
      answer(api.PATCH("/jobs/{id}", { params: { path: { id } }, body: patch as Record<string, never> })),
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

/** Reads a job file or batch script; changes nothing. */
export const useParse = () =>
  useMutation({
    mutationFn: (file: { file_name: string; text: string }) =>
      answer(api.POST("/jobs/parse", { body: file })),
  });

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

/** As a field of a body. */
const shown = (proof: Proof | undefined) => (proof ? { proof } : {});

export const useAccountChange = () =>
  useProvenChange(
    ({ name, ...body }: { name: string; standing?: "active" | "disabled"; admin?: boolean }, proof) =>
      answer(
        api.PATCH("/accounts/{name}", { params: { path: { name } }, body: { ...body, ...shown(proof) } }),
      ),
    ["accounts", "audit"],
  );

export const useAccountDelete = () =>
  useChange(
    ({ name, stopJobs }: { name: string; stopJobs: boolean }) =>
      answer(api.DELETE("/accounts/{name}", { params: { path: { name }, query: { stop_jobs: stopJobs } } })),
    ["accounts", "audit", "jobs"],
  );

export const useSharingSet = () =>
  useChange(
    (body: SharingRules) => answer(api.PUT("/sharing", { body })),
    ["sharing", "workspaces", "job", "jobs", "audit"],
  );

export const useAccountCreate = () =>
  useChange(
    (body: { name: string; email?: string | null }) => answer(api.POST("/accounts", { body })),
    ["accounts"],
  );

export const usePasswordLink = () =>
  useProvenChange(
    (name: string, proof) =>
      answer(api.POST("/accounts/{name}/password_link", { params: { path: { name } }, body: shown(proof) })),
    ["tokens"],
  );

export const useApprove = () =>
  useChange(
    ({ id, generation }: Pick<JobView, "id" | "generation">) =>
      answer(api.POST("/jobs/{id}/approval", { params: { path: { id } }, body: { generation } })),
    JOBS,
  );

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
  useProvenChange(
    (body: { name: string; scope: "read" | "jobs" | "all"; lasts?: string }, proof) =>
      answer(api.POST("/tokens", { body: { ...body, ...shown(proof) } })),
    ["tokens"],
  );

export const useTokenRevoke = () =>
  useChange(
    ({ name, id }: { name: string; id: string }) =>
      answer(api.DELETE("/accounts/{name}/tokens/{id}", { params: { path: { name, id } } })),
    ["tokens"],
  );

export const useSshKeyAdd = () =>
  useProvenChange(
    ({ name, key }: { name: string; key: string }, proof) =>
      answer(
        api.POST("/accounts/{name}/ssh_keys", {
          params: { path: { name } },
          body: { key, ...shown(proof) },
        }),
      ),
    ["keys"],
  );

export const useSshKeyRemove = () =>
  useChange(
    ({ name, id }: { name: string; id: string }) =>
      answer(api.DELETE("/accounts/{name}/ssh_keys/{id}", { params: { path: { name, id } } })),
    ["keys"],
  );

export const useS3KeyMake = () =>
  useProvenChange(
    ({ name, purpose }: { name: string; purpose: string }, proof) =>
      answer(
        api.POST("/accounts/{name}/s3_keys", {
          params: { path: { name } },
          body: { name: purpose, ...shown(proof) },
        }),
      ),
    ["keys"],
  );

export const useS3KeyRemove = () =>
  useChange(
    ({ name, id }: { name: string; id: string }) =>
      answer(
        api.DELETE("/accounts/{name}/s3_keys/{access_key}", { params: { path: { name, access_key: id } } }),
      ),
    ["keys"],
  );

export const useIdentityLink = () =>
  useChange(
    (proof: { password: string; code?: string }) => answer(api.POST("/oidc/link", { body: proof })),
    [],
  );

export const useIdentityUnlink = () =>
  useChange(
    ({ name, id }: { name: string; id: string }) =>
      answer(api.DELETE("/accounts/{name}/identities/{id}", { params: { path: { name, id } } })),
    ["identities"],
  );

export const useTotpEnrol = () =>
  useChange(
    ({ name, password }: { name: string; password: string }) =>
      answer(
        api.POST("/accounts/{name}/totp", { params: { path: { name } }, body: password ? { password } : {} }),
      ),
    [],
  );

export const useTotpConfirm = () =>
  useChange(
    ({ name, code }: { name: string; code: string }) =>
      answer(api.POST("/accounts/{name}/totp/confirmation", { params: { path: { name } }, body: { code } })),
    ["whoami"],
  );

export const useTotpRemove = () =>
  useChange(
    ({ name, code }: { name: string; code: string }) =>
      answer(api.DELETE("/accounts/{name}/totp", { params: { path: { name } }, body: { code } })),
    ["whoami"],
  );

/** Lets somebody into a workspace who asks for it, or turns them away. */
export const useAdmission = () =>
  useChange(
    ({ workspace, account, isLetIn }: { workspace: string; account: string; isLetIn: boolean }) => {
      const params = { path: { name: workspace, account } };
      const path = "/workspaces/{name}/applicants/{account}";
      return answer(isLetIn ? api.POST(path, { params }) : api.DELETE(path, { params }));
    },
    ["workspaces"],
  );

export const useInvite = () =>
  useChange(
    ({ workspace, role }: { workspace: string; role: "viewer" | "member" | "owner" }) =>
      answer(
        api.POST("/workspaces/{name}/invitations", { params: { path: { name: workspace } }, body: { role } }),
      ),
    ["workspaces"],
  );

export const useDisinvite = () =>
  useChange(
    ({ workspace, id }: { workspace: string; id: string }) =>
      answer(
        api.DELETE("/workspaces/{name}/invitations/{id}", { params: { path: { name: workspace, id } } }),
      ),
    ["workspaces"],
  );

export const useSecretSet = () =>
  useChange(
    ({ workspace, name, value }: { workspace: string; name: string; value: string }) => {
      const params = { path: { name: workspace, secret: name } };
      return answer(api.PUT("/workspaces/{name}/secrets/{secret}", { params, body: { value } }));
    },
    ["workspaces"],
  );

export const useSecretDelete = () =>
  useChange(
    ({ workspace, name }: { workspace: string; name: string }) =>
      answer(
        api.DELETE("/workspaces/{name}/secrets/{secret}", {
          params: { path: { name: workspace, secret: name } },
        }),
      ),
    ["workspaces"],
  );

/** Stores an archive under its digest. One that is there already is stored again, which costs its transfer and nothing else. */
export const uploadCode = (digest: string, archive: Uint8Array<ArrayBuffer>) =>
  answer(
    api.PUT("/code/{digest}", {
      params: { path: { digest } },
      headers: { "content-type": "application/octet-stream" },
      body: "",
      bodySerializer: () => new Blob([archive]),
    }),
  );

export const migrate = (body: MigrationRequest) => answer(api.POST("/migrations", { body }));
