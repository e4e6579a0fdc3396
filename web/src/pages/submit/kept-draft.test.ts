import { expect, test } from "vitest";
import { forgetDraft, keepDraft, keptDraft } from "./kept-draft";

function memory() {
  const values = new Map<string, string>();
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value),
    removeItem: (key: string) => void values.delete(key),
  };
}

test("a draft is kept for whoever wrote it, until it is submitted", () => {
  const store = memory();
  keepDraft("ada", { draft: { command: "half-typed" }, text: "# why\ncommand: half-typed" }, () => store);
  expect(keptDraft("ada", () => store)).toEqual({
    draft: { command: "half-typed" },
    text: "# why\ncommand: half-typed",
  });
  expect(keptDraft("bob", () => store)).toBeUndefined();
  forgetDraft("ada", () => store);
  expect(keptDraft("ada", () => store)).toBeUndefined();
});

test("windows that keep nothing, and what is no draft, do no harm", () => {
  const forbidden = () => {
    throw new DOMException("no storage", "SecurityError");
  };
  keepDraft("ada", { draft: { command: "x" } }, forbidden);
  expect(keptDraft("ada", forbidden)).toBeUndefined();
  const store = memory();
  for (const text of ["", "null", "{}", "[1", '{"draft":null}']) {
    store.setItem("danlu.draft.ada", text);
    expect(keptDraft("ada", () => store)).toBeUndefined();
  }
});
