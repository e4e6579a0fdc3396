/** The job that somebody was about to submit, kept in this window: a reload, a sign-in or a look at another page loses nothing. */
import type { Draft } from "./draft";

/** What was typed; the text where it was written as a file, with its comments. */
export type KeptDraft = { draft: Draft; text?: string | undefined };

type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

const keyOf = (account: string) => `danlu.draft.${account}`;

/** Windows that may keep nothing have no store to speak of. */
function tried<T>(what: () => T): T | undefined {
  try {
    return what();
  } catch {
    return undefined;
  }
}

export function keepDraft(account: string, kept: KeptDraft, store: () => Store = () => sessionStorage) {
  tried(() => store().setItem(keyOf(account), JSON.stringify(kept)));
}

export function forgetDraft(account: string, store: () => Store = () => sessionStorage) {
  tried(() => store().removeItem(keyOf(account)));
}

export function keptDraft(account: string, store: () => Store = () => sessionStorage): KeptDraft | undefined {
  const kept = tried(
    () => JSON.parse(store().getItem(keyOf(account)) ?? "null") as Partial<KeptDraft> | null,
  );
  if (typeof kept?.draft !== "object" || kept.draft === null) return undefined;
  return { draft: kept.draft, text: typeof kept.text === "string" ? kept.text : undefined };
}
