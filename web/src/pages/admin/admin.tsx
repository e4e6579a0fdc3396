/** Users, approvals, tokens, audit, settings. */
import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { ADMIN_TABS, type AdminTab, paths } from "../../app/paths";
import { useMe } from "../../app/session";
import { Failure } from "../../ui/answer";
import { Page, Tabs } from "../../ui/page";
import { Accounts } from "./accounts";
import { Audit } from "./audit";
import { Settings } from "./settings";

const VIEWS: Record<AdminTab, { view: React.ComponentType; command: string }> = {
  accounts: { view: Accounts, command: "danlu admin user list" },
  audit: { view: Audit, command: "danlu admin audit" },
  settings: { view: Settings, command: "danlu admin workspace personal" },
};

export function Admin() {
  const { t } = useTranslation();
  const me = useMe();
  const named = useParams().tab;
  const tab = ADMIN_TABS.find((one) => one === named) ?? "accounts";
  const { view: View, command } = VIEWS[tab];
  return (
    <Page title={t(`nav.${tab}`)} command={command}>
      <Tabs
        label={t("nav.admin")}
        links={ADMIN_TABS.map((one) => ({ to: paths.admin(one), title: t(`nav.${one}`) }))}
      />
      {me.account.admin ? <View /> : <Failure error={new Error(t("obstacle.admin"))} />}
    </Page>
  );
}
