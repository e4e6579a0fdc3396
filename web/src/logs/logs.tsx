/** Find the first error among 64 ranks. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobView } from "../api/client";
import { useAddress } from "../app/address";
import { rankCount } from "../pages/job/timeline";
import { Failure } from "../ui/answer";
import { Button, SearchField, SmallSelect, Switch } from "../ui/controls";
import { download } from "./download";
import { LogView } from "./log-view";
import { ERRORS, Hits } from "./search";
import { useLog } from "./use-log";

const numberOf = (text: string | null): number | undefined =>
  text !== null && /^\d+$/.test(text) ? Number(text) : undefined;

export function Logs({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const address = useAddress();
  const { query } = address;
  const lastAttempt = job.attempts.at(-1)?.number ?? 1;
  const attempt = numberOf(query.get("attempt")) ?? lastAttempt;
  const rank = numberOf(query.get("rank"));
  const line = numberOf(query.get("line"));
  const search = query.get("search") ?? "";
  const [text, setText] = useState(search);
  const [showsTimes, setShowsTimes] = useState(true);
  const [isFollowing, setFollowing] = useState(line === undefined);
  const [showsReports, setShowsReports] = useState(false);
  const log = useLog({ id: job.id, attempt, rank, line }, showsReports);
  const set = (changes: Record<string, string | undefined>) => address.set(changes, { replace: false });
  const goToEnd = () => {
    setFollowing(true);
    if (line !== undefined) set({ line: undefined });
    else log.fromEnd();
  };
  const ranks = rankCount(job);
  if (job.attempts.length === 0) return <div className="note">{t("logs.notStarted")}</div>;
  return (
    <>
      <div className="log-tools">
        <SmallSelect
          label={t("logs.attempt")}
          value={String(attempt)}
          onChange={(value) => set({ attempt: value, line: undefined })}
          options={job.attempts.map(({ number }) => ({
            value: String(number),
            label: t("logs.attemptNumber", { number }),
          }))}
        />
        <SmallSelect
          label={t("logs.rank")}
          value={rank === undefined ? "" : String(rank)}
          onChange={(value) => set({ rank: value, line: undefined })}
          options={[
            { value: "", label: t("logs.allRanks", { count: ranks }) },
            ...Array.from({ length: ranks }, (_, index) => ({
              value: String(index),
              label: t("logs.rankNumber", { number: index }),
            })),
          ]}
        />
        <SearchField
          label={t("logs.search")}
          value={text}
          onChange={setText}
          onEnter={() => set({ search: text })}
        />
        <Button small onClick={() => set({ search: text })}>
          {t("logs.searchAction")}
        </Button>
        <Button
          small
          onClick={() => {
            setText(ERRORS);
            set({ search: ERRORS });
          }}
        >
          {t("logs.errors")}
        </Button>
        <Switch label={t("logs.times")} checked={showsTimes} onChange={setShowsTimes} />
        <Switch label={t("logs.reports")} checked={showsReports} onChange={setShowsReports} />
        <span style={{ flex: 1 }} />
        <Button
          small
          onClick={() => {
            setFollowing(false);
            return log.fromStart();
          }}
        >
          {t("logs.toStart")}
        </Button>
        <Button small kind={isFollowing ? "primary" : "plain"} onClick={goToEnd}>
          {isFollowing && !log.isEnded ? t("logs.following") : t("logs.toEnd")}
        </Button>
        <Button small onClick={() => download(job, attempt, rank)}>
          {t("logs.download")}
        </Button>
      </div>
      {search ? (
        <Hits asked={{ id: job.id, attempt, rank, text: search, isPattern: search === ERRORS }} />
      ) : null}
      {log.error ? <Failure error={log.error} again={log.fromEnd} /> : null}
      <LogView
        log={log}
        showsTimes={showsTimes}
        isFollowing={isFollowing}
        onFollowing={setFollowing}
        marked={rank !== undefined && line !== undefined ? { rank, line } : undefined}
      />
    </>
  );
}
