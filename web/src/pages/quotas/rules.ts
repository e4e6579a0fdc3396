/** The rules of a workspace as texts in a form, and back. Pure. */
import type { WorkspaceRules, WorkspaceView } from "../../api/client";

export const RESOURCES = ["ascend", "nvidia", "cpus", "memory"] as const;
export const KINDS = ["guaranteed", "limit", "per_user"] as const;
type Resource = (typeof RESOURCES)[number];
type Kind = (typeof KINDS)[number];

export type Texts = Record<`${Kind}.${Resource}`, string>;

const keys = KINDS.flatMap((kind) =>
  RESOURCES.map((resource) => ({ kind, resource, key: `${kind}.${resource}` as const })),
);

export function textsOf(workspace: WorkspaceRules | undefined): Texts {
  const entries = keys.map(({ kind, resource, key }) => [key, String(workspace?.[kind]?.[resource] ?? "")]);
  return Object.fromEntries(entries) as Texts;
}

/** What was not in the form stays as it was. */
export function rulesOf(workspace: WorkspaceView | WorkspaceRules | undefined, texts: Texts): WorkspaceRules {
  const {
    name: _name,
    used: _used,
    borrowed: _borrowed,
    lent: _lent,
    ...rest
  } = (workspace ?? {}) as WorkspaceView;
  const rules: Record<string, unknown> = { ...rest };
  for (const kind of KINDS) {
    const amounts = RESOURCES.flatMap((resource) => {
      const text = texts[`${kind}.${resource}`].trim();
      if (!text) return [];
      const isCount = resource === "ascend" || resource === "nvidia";
      return [[resource, isCount ? Number(text) : text] as const];
    });
    rules[kind] = Object.fromEntries(amounts);
  }
  return rules as WorkspaceRules;
}
