/** Requests to the server. Whatever goes wrong becomes a `Refusal` with the server's own words. */
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Schemas = components["schemas"];
export type JobView = Schemas["JobView"];
export type JobSpec = Schemas["JobSpec"];
export type JobCounts = Schemas["JobCounts"];
export type AttemptView = Schemas["AttemptView"];
export type WorkerView = Schemas["WorkerView"];
export type Explanation = Schemas["Explanation"];
export type Reason = Schemas["Reason"];
export type FailedWorker = Schemas["FailedWorker"];
export type RequestedResources = Schemas["RequestedResources"];
export type NodeView = Schemas["NodeView"];
export type SimulationRun = Schemas["SimulationRun"];
export type UsagePoint = Schemas["UsagePoint"];
export type DeviceView = Schemas["DeviceView"];
export type WorkspaceView = Schemas["WorkspaceView"];
export type WorkspaceRules = Schemas["Workspace"];
export type SharingRules = Schemas["SharingRules"];
export type QuotaView = Schemas["QuotaView"];
export type LogLine = Schemas["LogLine"];
export type LogLines = Schemas["LogLines"];
export type LogMessage = Schemas["LogMessage"];
export type DeviceUse = Schemas["DeviceUse"];
export type Sample = Schemas["Sample"];
export type MetricPoint = Schemas["MetricPoint"];
export type AccountView = Schemas["AccountView"];
export type MigrationRequest = Schemas["MigrationRequest"];
export type MigrationView = Schemas["MigrationView"];
export type ParsedJobFile = Schemas["ParsedJobFile"];
export type MigratedFile = Schemas["MigratedFile"];
export type Whoami = Schemas["Whoami"];
type Problem = Schemas["Problem"];

/** A problem that the server answered with, or that kept it from answering. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly fields: { field: string; message: string }[];

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? `the server returned status ${status}`);
    this.name = "Refusal";
    this.status = status;
    this.code = problem.code ?? "unknown";
    this.hint = problem.hint ?? undefined;
    this.fields = problem.errors ?? [];
  }
}

/** Told when the server no longer knows who we are. */
export const unauthenticated = new EventTarget();

export const api = createClient<paths>({ baseUrl: "/api/v1", headers: { "x-danlu-console": "1" } });

/** What the server answered, or an exception. */
export async function answer<T>(
  request: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  let result: { data?: T; error?: unknown; response: Response };
  try {
    result = await request;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new Refusal(0, { code: "unavailable", detail: "the server is not responding" });
  }
  if (result.response.ok) return result.data as T;
  const problem = typeof result.error === "object" && result.error ? (result.error as Partial<Problem>) : {};
  if (result.response.status === 401) unauthenticated.dispatchEvent(new Event("lost"));
  throw new Refusal(result.response.status, problem);
}
