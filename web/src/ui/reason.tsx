/** Why something is as it is, in the reader's language: by the server's codes, names and numbers; its English where we have no words. */
import i18next, { t } from "i18next";
import type { Explanation } from "../api/client";
import { kindName } from "../format/amounts";
import { filled } from "../format/sentence";
import { exact } from "../format/time";

type Why = { code: string; text: string; about?: Record<string, string> };
type Offer = { text: string; set: Record<string, string> };
type Basis = NonNullable<NonNullable<Explanation["estimate"]>["basis"]>;

// The language is asked for and not listened to: whoever shows a reason is drawn again when it changes, and rows of long
// lists are made while one scrolls, where each hook costs.

/** A template of ours, not yet filled; empty where there is none. Some have a form of their own for one job. */
const template = (key: string, jobs?: string): string =>
  t(key as "said.held", {
    defaultValue: "",
    skipInterpolation: true,
    ...(jobs ? { count: Number(jobs) } : {}),
  });

/** What the server says of a thing, in words that people read: times, and names of resources. */
function readable(about: Record<string, string>): Record<string, string> {
  const { until, resource } = about;
  const words = { ...about };
  if (until) words.until = exact(until, i18next.language);
  if (resource)
    words.resource =
      resource === "cpus" || resource === "memory" ? t(`spec.${resource}`) : kindName(resource);
  return words;
}

/** A short phrase by the code alone. */
export const reasonPhrase = (reason: Why): string =>
  t(`reason.${reason.code}` as "reason.held", { defaultValue: reason.text });

export function reasonSentence(reason: Why): string {
  const about = readable(reason.about ?? {});
  const inOurs = filled(template(`said.${reason.code}`, about.jobs), about);
  // Of jobs that earlier versions took, only the sentence is known.
  const otherwise = reason.code === "needs_approval" ? reason.text : reasonPhrase(reason);
  const said = inOurs ?? otherwise;
  // What a program said when it broke is in no language of ours.
  return about.detail ? t("common.detailed", { text: said, detail: about.detail }) : said;
}

/** What an estimate goes by, in the reader's language. */
export function basisSentence(basis: Basis): string {
  const counts = [
    ["why.basisPreemptions", basis.preemptions],
    ["why.basisTimeLimits", basis.time_limits],
    ["why.basisProgress", basis.progress],
    ["why.basisPastDurations", basis.past_durations],
    ["why.basisGuesses", basis.guesses],
  ] as const;
  const parts = counts.filter(([, count]) => count > 0).map(([key, count]) => t(key, { count }));
  return parts.length > 0 ? parts.join(t("why.and")) : t("why.basisNow");
}

export function offerSentence({ text, set }: Offer): string {
  const parts = Object.entries(set).map(([field, value]) =>
    filled(template(`offer.${field.replace(".", "_")}`), { value }),
  );
  return parts.every((part) => part !== undefined) ? parts.join(", ") : text;
}

export function Reason({ reason }: { reason: Why }) {
  const text = reasonSentence(reason);
  return (
    <span className="muted" title={text}>
      {text}
    </span>
  );
}
