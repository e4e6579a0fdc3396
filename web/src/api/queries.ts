/** Everything that is read, by key. Changes make keys stale (`hints.ts`, `changes.ts`); nobody else fetches. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api, type Explanation, type JobSpec } from "./client";

/** What the address of the Jobs page says. */
export type JobFilter = { state?: string; workspace?: string; owner?: string; search?: string };

const JOBS_PER_PAGE = 200;

export const whoami = queryOptions({
  queryKey: ["whoami"],
  queryFn: ({ signal }) => answer(api.GET("/whoami", { signal })),
  staleTime: 60_000,
  retry: false,
});

export const jobs = (filter: JobFilter) =>
  infiniteQueryOptions({
    queryKey: ["jobs", "list", filter],
    queryFn: ({ signal, pageParam }) =>
      answer(
        api.GET("/jobs", {
          params: { query: { ...filter, limit: JOBS_PER_PAGE, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });

export const someJobs = (filter: JobFilter, limit: number) =>
  queryOptions({
    queryKey: ["jobs", "some", filter, limit],
    queryFn: ({ signal }) => answer(api.GET("/jobs", { params: { query: { ...filter, limit } }, signal })),
  });

export const jobCounts = (filter: Omit<JobFilter, "state">) =>
  queryOptions({
    queryKey: ["jobs", "counts", filter],
    queryFn: ({ signal }) => answer(api.GET("/jobs/counts", { params: { query: filter }, signal })),
  });

export const job = (id: number) =>
  queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) => answer(api.GET("/jobs/{id}", { params: { path: { id } }, signal })),
  });

export const why = (id: number) =>
  queryOptions({
    queryKey: ["job", id, "why"],
    queryFn: ({ signal }) => answer(api.GET("/jobs/{id}/why", { params: { path: { id } }, signal })),
  });

export const jobEvents = (id: number) =>
  queryOptions({
    queryKey: ["job", id, "events"],
    queryFn: ({ signal }) =>
      answer(api.GET("/events", { params: { query: { job: id, limit: 1000 } }, signal })),
  });

type FilesOf = { area: "output" | "checkpoint" | "work"; path: string; worker?: number };

export const files = (id: number, where: FilesOf) =>
  queryOptions({
    queryKey: ["job", id, "files", where],
    queryFn: ({ signal }) =>
      answer(api.GET("/jobs/{id}/files", { params: { path: { id }, query: where }, signal })),
  });

export type SeriesOf = { id: number; attempt: number; worker: number };

const POINTS = 2000;

export const metrics = ({ id, attempt, worker }: SeriesOf) =>
  queryOptions({
    queryKey: ["job", id, "metrics", attempt, worker],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/jobs/{id}/metrics", {
          params: { path: { id }, query: { attempt, worker, tail: POINTS } },
          signal,
        }),
      ),
  });

export const samples = ({ id, attempt, worker }: SeriesOf) =>
  queryOptions({
    queryKey: ["job", id, "samples", attempt, worker],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/jobs/{id}/samples", {
          params: { path: { id }, query: { attempt, worker, tail: POINTS } },
          signal,
        }),
      ),
  });

export const dryRun = (spec: JobSpec | undefined) =>
  queryOptions({
    queryKey: ["dry-run", spec],
    queryFn: ({ signal }) =>
      answer(
        api.POST("/jobs", { params: { query: { dry_run: true } }, body: spec as JobSpec, signal }),
      ) as unknown as Promise<Explanation>,
    enabled: spec !== undefined,
    retry: false,
  });

export const nodes = queryOptions({
  queryKey: ["nodes"],
  queryFn: ({ signal }) => answer(api.GET("/nodes", { signal })),
});

export const devices = queryOptions({
  queryKey: ["devices"],
  queryFn: ({ signal }) => answer(api.GET("/devices", { signal })),
});

export const usage = queryOptions({
  queryKey: ["usage"],
  queryFn: ({ signal }) => answer(api.GET("/usage", { signal })),
});

export const workspaces = queryOptions({
  queryKey: ["workspaces"],
  queryFn: ({ signal }) => answer(api.GET("/workspaces", { signal })),
});

export const quota = queryOptions({
  queryKey: ["workspaces", "quota"],
  queryFn: ({ signal }) => answer(api.GET("/quota", { signal })),
});

export const members = (name: string) =>
  queryOptions({
    queryKey: ["workspaces", name, "members"],
    queryFn: ({ signal }) =>
      answer(api.GET("/workspaces/{name}/members", { params: { path: { name } }, signal })),
  });

export const accounts = queryOptions({
  queryKey: ["accounts"],
  queryFn: ({ signal }) => answer(api.GET("/accounts", { signal })),
});

/** What holds for all workspaces, and for everybody's own. */
export const sharing = queryOptions({
  queryKey: ["sharing"],
  queryFn: ({ signal }) => answer(api.GET("/sharing", { signal })),
});

export const tokens = (name: string) =>
  queryOptions({
    queryKey: ["tokens", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/accounts/{name}/tokens", { params: { path: { name } }, signal })),
  });

export const waysIn = queryOptions({
  queryKey: ["ways-in"],
  queryFn: ({ signal }) => answer(api.GET("/ways_in", { signal })),
});

export const identities = (name: string) =>
  queryOptions({
    queryKey: ["identities", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/accounts/{name}/identities", { params: { path: { name } }, signal })),
  });

export const sshKeys = (name: string) =>
  queryOptions({
    queryKey: ["keys", "ssh", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/accounts/{name}/ssh_keys", { params: { path: { name } }, signal })),
  });

export const s3Keys = (name: string) =>
  queryOptions({
    queryKey: ["keys", "s3", name],
    queryFn: ({ signal }) =>
      answer(api.GET("/accounts/{name}/s3_keys", { params: { path: { name } }, signal })),
  });

export const applicants = (name: string) =>
  queryOptions({
    queryKey: ["workspaces", name, "applicants"],
    queryFn: ({ signal }) =>
      answer(api.GET("/workspaces/{name}/applicants", { params: { path: { name } }, signal })),
  });

export const invitations = (name: string) =>
  queryOptions({
    queryKey: ["workspaces", name, "invitations"],
    queryFn: ({ signal }) =>
      answer(api.GET("/workspaces/{name}/invitations", { params: { path: { name } }, signal })),
  });

export const secrets = (name: string) =>
  queryOptions({
    queryKey: ["workspaces", name, "secrets"],
    queryFn: ({ signal }) =>
      answer(api.GET("/workspaces/{name}/secrets", { params: { path: { name } }, signal })),
  });

export const audit = (filter: { by?: string; subject?: string }) =>
  infiniteQueryOptions({
    queryKey: ["audit", filter],
    queryFn: ({ signal, pageParam }) =>
      answer(api.GET("/audit", { params: { query: { ...filter, limit: 200, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
