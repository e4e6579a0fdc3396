import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import { isLong, renew, staleKeys } from "./hints";

test("a hint makes stale what it is about, and lists a little later", () => {
  const hint = staleKeys({ kind: "job", id: "7", generation: 3 });
  expect(hint.now).toEqual([["job", 7]]);
  expect(hint.soon).toContainEqual(["jobs"]);
  expect(staleKeys({ kind: "of a later version", id: "1", generation: 1 })).toEqual({ now: [], soon: [] });
});

test("long lists are not asked for again at every change", () => {
  expect([{ pages: [1] }, { pages: [1, 2, 3, 4, 5, 6] }, { items: [] }, undefined].map(isLong)).toEqual([
    false,
    true,
    false,
    false,
  ]);
});

test("a change during the first answer is asked for after it", async () => {
  const client = new QueryClient();
  const answers: ((state: string) => void)[] = [];
  const queryFn = () => new Promise<string>((resolve) => answers.push(resolve));
  const observer = new QueryObserver(client, { queryKey: ["job", 7], queryFn });
  const stop = observer.subscribe(() => undefined);
  const renewed = renew(client, { queryKey: ["job", 7] });
  answers[0]?.("starting");
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  answers[1]?.("running");
  await renewed;
  expect(observer.getCurrentResult().data).toBe("running");
  stop();
});
