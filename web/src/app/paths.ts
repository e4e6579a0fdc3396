/** Every address of the console, spelled once. */
export const JOB_TABS = [
  "overview",
  "logs",
  "metrics",
  "ranks",
  "events",
  "files",
  "spec",
  "terminal",
] as const;
export type JobTab = (typeof JOB_TABS)[number];

export const ADMIN_TABS = ["accounts", "audit", "settings"] as const;
export type AdminTab = (typeof ADMIN_TABS)[number];

export const paths = {
  overview: () => "/",
  jobs: (query = "") => `/jobs${query}`,
  job: (id: number, tab: JobTab = "overview") => (tab === "overview" ? `/jobs/${id}` : `/jobs/${id}/${tab}`),
  logLine: (id: number, attempt: number, rank: number, line: number) =>
    `/jobs/${id}/logs?attempt=${attempt}&rank=${rank}&line=${line}`,
  submit: (like?: number) => (like === undefined ? "/submit" : `/submit?like=${like}`),
  /** A copy of a waiting job with changes, in its place. */
  /** A job that runs a migrated snapshot. */
  submitMigrated: (code: string, from: string, name: string) =>
    `/submit?${new URLSearchParams({ code, from, name })}`,
  nodes: () => "/nodes",
  node: (name: string) => `/nodes/${encodeURIComponent(name)}`,
  quotas: () => "/quotas",
  members: (workspace?: string) =>
    workspace === undefined ? "/members" : `/members?workspace=${encodeURIComponent(workspace)}`,
  simulate: () => "/simulate",
  migrate: () => "/migrate",
  /** Not a page: the server answers it with a file. */
  migrationReport: (code: string, report: string) =>
    `/api/v1/migrations/${encodeURIComponent(code)}/reports/${encodeURIComponent(report)}`,
  profile: () => "/profile",
  admin: (tab: AdminTab = "accounts") => `/admin/${tab}`,
  signIn: () => "/sign-in",
  register: () => "/register",
  provider: () => "/api/v1/oidc/start",
  setPassword: () => "/set-password",
} as const;
