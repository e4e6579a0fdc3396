/** What of mine is running, waiting, broken? */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useStop } from "../../api/changes";
import { isLong } from "../../api/hints";
import { jobCounts, jobs, workspaces } from "../../api/queries";
import { useAddress } from "../../app/address";
import { paths } from "../../app/paths";
import { useMe } from "../../app/session";
import { Answer } from "../../ui/answer";
import { quoted } from "../../ui/command";
import { Button, Confirm, SearchField, SmallSelect, Switch } from "../../ui/controls";
import { Page, Tabs } from "../../ui/page";
import { Table } from "../../ui/table";
import { useColumns } from "./columns";
import { countOf, statesOf, TABS, type Tab } from "./tabs";

export function Jobs() {
  const { t } = useTranslation();
  const me = useMe();
  const address = useAddress();
  const { query } = address;
  const tab = TABS.find((one) => one === query.get("tab")) ?? "all";
  const search = query.get("search") ?? "";
  const workspace = query.get("workspace") ?? "";
  const isMine = query.get("owner") === me.account.name;
  const set = (name: string, value: string) => address.set({ [name]: value });

  const filter = {
    search: search || undefined,
    workspace: workspace || undefined,
    owner: query.get("owner") || undefined,
  };
  const list = useInfiniteQuery({
    ...jobs({ ...filter, state: statesOf(tab) }),
    placeholderData: keepPreviousData,
  });
  const counts = useQuery({ ...jobCounts(filter), placeholderData: keepPreviousData });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const { fetchNextPage, hasNextPage, isFetching } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);

  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const toggle = useCallback((id: number) => {
    setChosen((old) => {
      const next = new Set(old);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  const columns = useColumns(chosen, toggle);
  const state = statesOf(tab);
  const flags = [
    state ? `--state ${state}` : "",
    search ? `--search ${quoted(search)}` : "",
    workspace ? `--workspace ${quoted(workspace)}` : "",
    filter.owner ? `--owner ${quoted(filter.owner)}` : "",
  ].filter(Boolean);
  return (
    <Page
      fixed
      title={t("jobs.title")}
      command={["danlu jobs", ...flags].join(" ")}
      actions={
        <>
          <BulkStop chosen={chosen} onDone={() => setChosen(new Set())} />
          <Link to={paths.submit()}>{t("nav.submit")}</Link>
        </>
      }
    >
      <div className="row spread">
        <Tabs
          label={t("jobs.tabs")}
          links={TABS.map((one: Tab) => ({
            to: paths.jobs(address.with({ tab: one === "all" ? "" : one })),
            isCurrent: one === tab,
            title: (
              <>
                {t(`jobs.tab.${one}`)}
                <span className="count">
                  {counts.data ? countOf(counts.data, one).toLocaleString("en") : "–"}
                </span>
              </>
            ),
          }))}
        />
        <div className="row">
          <Switch
            label={t("jobs.mine")}
            checked={isMine}
            onChange={(on) => set("owner", on ? me.account.name : "")}
          />
          <WorkspaceFilter value={workspace} onChange={(value) => set("workspace", value)} />
          <SearchField label={t("jobs.search")} value={search} onChange={(value) => set("search", value)} />
        </div>
      </div>
      <Answer of={list}>
        {(data) => (
          <>
            {isLong(data) ? (
              <div className="banner" role="status">
                <p>{t("jobs.longList")}</p>
                <Button small onClick={() => list.refetch()}>
                  {t("common.refresh")}
                </Button>
              </div>
            ) : null}
            <Table
              label={t("jobs.title")}
              columns={columns}
              rows={rows}
              rowKey={(job) => job.id}
              total={counts.data ? countOf(counts.data, tab) : undefined}
              onEnd={onEnd}
              empty={
                <>
                  <p>{search || workspace || tab !== "all" ? t("jobs.noneFound") : t("jobs.none")}</p>
                  <Link to={paths.submit()}>{t("jobs.first")}</Link>
                </>
              }
            />
          </>
        )}
      </Answer>
    </Page>
  );
}

function WorkspaceFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t } = useTranslation();
  const known = useQuery(workspaces).data?.items.map((workspace) => workspace.name) ?? [];
  const names = [...new Set([...known, ...(value ? [value] : [])])];
  return (
    <SmallSelect
      label={t("job.workspace")}
      value={value}
      onChange={onChange}
      options={[
        { value: "", label: t("jobs.everyWorkspace") },
        ...names.map((name) => ({ value: name, label: name })),
      ]}
    />
  );
}

function BulkStop({ chosen, onDone }: { chosen: ReadonlySet<number>; onDone: () => void }) {
  const { t } = useTranslation();
  const stop = useStop();
  const stopAll = async () => {
    const results = await Promise.allSettled([...chosen].map((id) => stop.mutateAsync(id)));
    onDone();
    const refused = results.filter((result) => result.status === "rejected");
    if (refused[0]) throw new Error(`${refused.length} / ${results.length}: ${refused[0].reason.message}`);
  };
  return (
    <Confirm
      small
      blocked={chosen.size === 0 && t("jobs.chooseFirst")}
      title={t("jobs.stopTitle", { count: chosen.size })}
      text={t("jobs.stopText")}
      action={t("job.stop")}
      kind="danger"
      onConfirm={stopAll}
    >
      {chosen.size > 0 ? t("jobs.stopChosen", { count: chosen.size }) : t("job.stop")}
    </Confirm>
  );
}
