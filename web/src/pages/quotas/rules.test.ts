import { expect, test } from "vitest";
import type { QuotaView, WorkspaceView } from "../../api/client";
import { matters } from "./quotas";
import { rulesOf, textsOf } from "./rules";

const workspace = {
  name: "vision",
  guaranteed: { ascend: 8, memory: "64Gi" },
  limit: {},
  default_priority: 3,
  used: { ascend: 2 },
  borrowed: {},
  lent: {},
} as unknown as WorkspaceView;

test("a form that nobody touched changes nothing", () => {
  expect(rulesOf(workspace, textsOf(workspace))).toEqual({
    guaranteed: { ascend: 8, memory: "64Gi" },
    limit: {},
    per_user: {},
    default_priority: 3,
  });
});

test("an emptied field is no longer spoken of, and counts are numbers", () => {
  const texts = { ...textsOf(workspace), "guaranteed.memory": "", "limit.ascend": " 4 " };
  const rules = rulesOf(workspace, texts);
  expect([rules.guaranteed, rules.limit]).toEqual([{ ascend: 8 }, { ascend: 4 }]);
});

test("what is neither promised, limited nor used is not shown", () => {
  const line = (rest: Partial<QuotaView>) => ({ used: 0, guaranteed: 0, ...rest }) as QuotaView;
  expect([line({}), line({ used: 1 }), line({ guaranteed: 1 }), line({ limit: 0 })].map(matters)).toEqual([
    false,
    true,
    true,
    true,
  ]);
});
