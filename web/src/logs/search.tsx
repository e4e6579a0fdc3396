/** Searches a whole job on the server: which ranks print it, and the first lines that do. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { answer, api, type LogLine } from "../api/client";
import { paths } from "../app/paths";
import { clock } from "../format/time";
import { Answer } from "../ui/answer";
import { plain } from "./ansi";

/**
 * What most programs print when they break; read as a regular expression. Exceptions of Python end with `Error` or
 * `Exception`; `EI0006` and its like are codes of CANN.
 */
export const ERRORS =
  "(?i)\\w*(error|exception)\\b|\\b(traceback|fatal|panicked|killed|aborted|segmentation fault|core dumped|out of memory|oom-kill|nccl warn|hccl[^:]* fail|e[a-z]\\d{4}:)";

const PER_PAGE = 500;
const MOST_HITS = 2000;
/** A page may be empty while the server reads on; it reads 256 MB at a time. */
const MOST_PAGES = 60;

export type Asked = {
  id: number;
  attempt: number;
  rank?: number | undefined;
  text: string;
  isPattern: boolean;
};
type Found = { hits: LogLine[]; isAll: boolean };

async function search(asked: Asked, signal: AbortSignal): Promise<Found> {
  const { id, attempt, rank, text, isPattern } = asked;
  const hits: LogLine[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES && hits.length < MOST_HITS; page += 1) {
    const query = { attempt, rank, search: text, regex: isPattern, limit: PER_PAGE, cursor };
    const found = await answer(api.GET("/jobs/{id}/logs", { params: { path: { id }, query }, signal }));
    hits.push(...found.items);
    cursor = found.next ?? undefined;
    if (!cursor) return { hits, isAll: true };
  }
  return { hits, isAll: false };
}

/** How many hits each rank has, most first. */
export function byRank(hits: LogLine[]): [number, number][] {
  const counts = new Map<number, number>();
  for (const hit of hits) counts.set(hit.rank, (counts.get(hit.rank) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1] || one[0] - other[0]);
}

export function Hits({ asked }: { asked: Asked }) {
  const { t } = useTranslation();
  const found = useQuery({
    queryKey: ["log-search", asked],
    queryFn: ({ signal }) => search(asked, signal),
    staleTime: 5000,
    retry: false,
  });
  return (
    <Answer of={found}>
      {({ hits, isAll }) => (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
        <section className="panel hits" aria-label={t("logs.hits")} tabIndex={0}>
          <div className="row">
            <b>{t(isAll ? "logs.found" : "logs.foundMore", { count: hits.length })}</b>
            {byRank(hits)
              .slice(0, 24)
              .map(([rank, count]) => (
                <Link
                  key={rank}
                  to={`?attempt=${asked.attempt}&rank=${rank}&search=${encodeURIComponent(asked.text)}`}
                >
                  {t("logs.rankShort", { rank })}: {count}
                </Link>
              ))}
          </div>
          {hits.slice(0, 100).map((hit) => (
            <div key={`${hit.rank}.${hit.number}`} className="row mono" style={{ flexWrap: "nowrap" }}>
              <Link to={paths.logLine(asked.id, hit.attempt, hit.rank, hit.number)} className="number">
                {clock(hit.at)} {t("logs.rankShort", { rank: hit.rank })}:{hit.number}
              </Link>
              <span style={{ whiteSpace: "pre", overflow: "hidden", textOverflow: "ellipsis" }}>
                {plain(hit.text)}
              </span>
            </div>
          ))}
        </section>
      )}
    </Answer>
  );
}
