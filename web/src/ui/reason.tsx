/** Why something is as it is, in the reader's language: by the server's codes, names and numbers; its English where we have no words. */
import i18next, { t } from "i18next";
import { kindName } from "../format/amounts";
import { filled } from "../format/sentence";
import { exact } from "../format/time";

type Why = { code: string; text: string; about?: Record<string, string> };
type Offer = { text: string; set: Record<string, string> };

// The language is asked for and not listened to: whoever shows a reason is drawn again when it changes, and rows of long
// lists are made while one scrolls, where each hook costs.

/** A template of ours, not yet filled; empty where there is none. */
const template = (key: string): string =>
  t(key as "said.held", { defaultValue: "", skipInterpolation: true });

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
  const said = filled(template(`said.${reason.code}`), about) ?? reasonPhrase(reason);
  // What a program said when it broke is in no language of ours.
  return about.detail ? `${said} (${about.detail})` : said;
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
