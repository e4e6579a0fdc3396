/** Times and durations for people. */

/** "2 d 3 h", "3 h 5 min", "42 s": the two largest units, so that it stays short. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const units: [number, string][] = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = units.findIndex(([amount]) => amount > 0);
  if (first === -1) return "0 s";
  return units
    .slice(first, first + 2)
    .filter(([amount], index) => index === 0 || amount > 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(" ");
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** One for each language: making one costs a hundred times what using it does, and lists use hundreds. */
function perLanguage<T>(make: (language: string) => T): (language: string) => T {
  const made = new Map<string, T>();
  return (language) => {
    const known = made.get(language) ?? make(language);
    made.set(language, known);
    return known;
  };
}

const fromNow = perLanguage(
  (language) => new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" }),
);
const inFull = perLanguage(
  (language) => new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" }),
);

/** "3 minutes ago", "in 2 hours", and "2 小时后" with the space that Chinese has after numbers here. */
export function relative(at: string, now: number, language: string): string {
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return fromNow(language)
    .format(Math.trunc(seconds / size), unit)
    .replace(/(\d)(?=\p{Script=Han})/u, "$1 ");
}

export function exact(at: string, language: string): string {
  return inFull(language).format(new Date(at));
}

/** "14:03:07.120", for lines of a log. */
export function clock(at: string): string {
  const date = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  const milliseconds = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${milliseconds}`;
}

/** Seconds of `1d12h`, `90s`, `1500ms`; nothing for what is no span. */
export function spanSeconds(span: string | number): number | undefined {
  const text = String(span);
  const sizes: Record<string, number> = { d: 86400, h: 3600, m: 60, s: 1, ms: 0.001 };
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|d|h|m|s)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== text) return undefined;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (sizes[unit ?? ""] ?? 0), 0);
}
