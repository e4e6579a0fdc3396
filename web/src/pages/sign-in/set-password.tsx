import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { answer, api } from "../../api/client";
import { paths } from "../../app/paths";
import { Failure } from "../../ui/answer";
import { Button, Switch, TextField } from "../../ui/controls";
import { Frame, fragment } from "./frame";

export function SetPassword() {
  const { t } = useTranslation();
  const [account, setAccount] = useState(fragment("account") ?? "");
  const [link, setLink] = useState(fragment("link") ?? "");
  const [password, setPassword] = useState("");
  const [keepTokens, setKeepTokens] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const navigate = useNavigate();
  const save = async () => {
    setFailure(undefined);
    try {
      await answer(api.POST("/password", { body: { account, password, link, keep_tokens: keepTokens } }));
      await navigate(paths.signIn());
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <Frame title={t("signIn.setPassword")} onSubmit={() => void save()}>
      <TextField label={t("signIn.name")} value={account} onChange={setAccount} autoComplete="username" />
      <TextField label={t("signIn.link")} value={link} onChange={setLink} mono autoComplete="one-time-code" />
      <TextField
        label={t("signIn.newPassword")}
        value={password}
        onChange={setPassword}
        secret
        autoComplete="new-password"
        hint={t("signIn.passwordRule")}
      />
      <Switch label={t("profile.keepTokens")} checked={keepTokens} onChange={setKeepTokens} />
      {failure ? <Failure error={failure} /> : null}
      <div>
        <Button submit kind="primary">
          {t("common.save")}
        </Button>
      </div>
    </Frame>
  );
}
