/** The frame around all pages of somebody who signed in: where one can go, and who one is. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Navigate, NavLink, Outlet, useLocation, useNavigate } from "react-router";
import { answer, api, Refusal, unauthenticated, type Whoami } from "../api/client";
import { useHints, useIsLive } from "../api/hints";
import { whoami } from "../api/queries";
import { chooseLanguage, LANGUAGES, type Language } from "../i18n";
import { Failure, Loading } from "../ui/answer";
import { Button, SmallSelect } from "../ui/controls";
import { type Theme, useTheme } from "../ui/theme";
import { paths } from "./paths";
import { ProofProvider } from "./proof";
import { useApprovals } from "./session";

export function Shell() {
  const { t } = useTranslation();
  const me = useQuery(whoami);
  const location = useLocation();
  const client = useQueryClient();
  const navigate = useNavigate();
  useEffect(() => {
    const onLost = () => {
      client.clear();
      void navigate(paths.signIn(), { state: { from: location.pathname + location.search } });
    };
    unauthenticated.addEventListener("lost", onLost);
    return () => unauthenticated.removeEventListener("lost", onLost);
  }, [client, navigate, location]);
  if (me.error instanceof Refusal && me.error.status === 401) {
    return <Navigate to={paths.signIn()} state={{ from: location.pathname + location.search }} replace />;
  }
  if (!me.data) {
    return (
      <>
        {me.isError ? <Failure error={me.error} again={me.refetch} /> : <Loading />}
        <Following />
      </>
    );
  }
  return (
    <ProofProvider>
      <a className="skip" href="#content">
        {t("nav.skip")}
      </a>
      <div className="shell">
        <Side me={me.data} />
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </div>
      {me.isError ? <Away again={() => void client.invalidateQueries()} /> : null}
      <Following />
    </ProofProvider>
  );
}

/** Over the page, which stays as it is: what is shown may be old, and what was typed is still there. */
function Away({ again }: { again: () => void }) {
  const { t } = useTranslation();
  return (
    <div className="banner bad away" role="status">
      <p>{t("common.away")}</p>
      <Button small onClick={again}>
        {t("common.again")}
      </Button>
    </div>
  );
}

/** Listens to the server's hints for as long as somebody is signed in. */
function Following() {
  useHints();
  return null;
}

function Side({ me }: { me: Whoami }) {
  const { t } = useTranslation();
  const { name, admin: isAdmin, workspaces } = me.account;
  const approvals = useApprovals(me);
  // Groups leave room: development environments, data and images get lines of their own when they exist.
  const groups: { title: string; links: [string, string][] }[] = [
    {
      title: t("nav.work"),
      links: [
        [paths.overview(), t("nav.overview")],
        [paths.jobs(), t("nav.jobs")],
        [paths.submit(), t("nav.submit")],
        [paths.migrate(), t("nav.migrate")],
      ],
    },
    {
      title: t("nav.cluster"),
      links: [
        [paths.nodes(), t("nav.nodes")],
        [paths.quotas(), t("nav.quotas")],
        ...(isAdmin || workspaces.length > 0
          ? [[paths.members(), t("nav.members")] as [string, string]]
          : []),
        [paths.simulate(), t("nav.simulate")],
      ],
    },
    ...(isAdmin
      ? [
          {
            title: t("nav.admin"),
            links: [
              [paths.admin("accounts"), t("nav.accounts")],
              [paths.admin("audit"), t("nav.audit")],
              [paths.admin("settings"), t("nav.settings")],
            ] as [string, string][],
          },
        ]
      : []),
  ];
  return (
    <header className="side">
      <NavLink to={paths.overview()} className="brand" aria-label="Danlu">
        <Mark />
        Danlu
      </NavLink>
      <nav aria-label={t("nav.label")} className="stack">
        {groups.map((group) => (
          <div key={group.title}>
            <div className="nav-title">{group.title}</div>
            <ul className="nav">
              {group.links.map(([to, title]) => (
                <li key={to}>
                  <NavLink to={to} end={to === paths.overview()}>
                    {title}
                    {to === paths.jobs() && approvals > 0 ? <Approvals count={approvals} /> : null}
                  </NavLink>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div className="side-end">
        <Live />
        <Choices />
        <ul className="nav">
          <li>
            <NavLink to={paths.profile()}>{name}</NavLink>
          </li>
        </ul>
        <SignOut />
      </div>
    </header>
  );
}

/** What somebody else waits for, wherever one is. */
function Approvals({ count }: { count: number }) {
  const { t } = useTranslation();
  const text = t("nav.approvals", { count });
  return (
    <span className="badge number" title={text}>
      <span aria-hidden="true">{count}</span>
      <span className="visually-hidden">{text}</span>
    </span>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <path d="M8 12h16l2 4c0 6-4 11-10 11S6 22 6 16z" fill="var(--ember)" />
      <path d="M16 3c3 3 1 5 3 7h-6c-1-3 3-4 3-7z" fill="var(--queued)" />
    </svg>
  );
}

function Live() {
  const { t } = useTranslation();
  const isLive = useIsLive();
  return (
    <span className={isLive ? "live" : "live stale"} role="status" style={{ padding: "0 8px" }}>
      <i aria-hidden="true" />
      {isLive ? t("common.live") : t("common.polling")}
    </span>
  );
}

function Choices() {
  const { t, i18n } = useTranslation();
  const { theme, choose } = useTheme();
  const names: Record<Language, string> = { en: "English", zh: "中文" };
  return (
    <div className="row" style={{ flexWrap: "nowrap" }}>
      <SmallSelect
        label={t("profile.language")}
        value={i18n.language}
        onChange={(language) => void chooseLanguage(language as Language)}
        options={LANGUAGES.map((value) => ({ value, label: names[value] }))}
      />
      <SmallSelect
        label={t("profile.theme")}
        value={theme}
        onChange={(value) => choose(value as Theme)}
        options={(["system", "light", "dark"] as const).map((value) => ({
          value,
          label: t(`theme.${value}`),
        }))}
      />
    </div>
  );
}

function SignOut() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const leave = async () => {
    await answer(api.DELETE("/session")).catch(() => undefined);
    client.clear();
    await navigate(paths.signIn());
  };
  return (
    <Button small kind="quiet" onClick={leave}>
      {t("nav.signOut")}
    </Button>
  );
}
