import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { answer, api } from "../../api/client";
import { paths } from "../../app/paths";
import { Failure } from "../../ui/answer";
import { Button, TextField } from "../../ui/controls";
import { Frame, fragment } from "./frame";

export function Register() {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [workspace, setWorkspace] = useState("");
  const [failure, setFailure] = useState<unknown>();
  const [isDone, setDone] = useState(false);
  const [invitation] = useState(() => fragment("link"));
  const register = async () => {
    setFailure(undefined);
    try {
      const body = { name, email: email || null, password, invitation, workspace: workspace || null };
      await answer(api.POST("/registration", { body }));
      setDone(true);
    } catch (error) {
      setFailure(error);
    }
  };
  const waiting = workspace ? "signIn.waitingForOwners" : "signIn.waiting";
  const done = invitation ? "signIn.welcome" : waiting;
  return (
    <Frame title={t("signIn.register")} onSubmit={() => void register()}>
      {isDone ? (
        <p role="status">{t(done)}</p>
      ) : (
        <>
          <TextField label={t("signIn.name")} value={name} onChange={setName} autoComplete="username" />
          <TextField label={t("signIn.email")} value={email} onChange={setEmail} autoComplete="email" />
          <TextField
            label={t("signIn.password")}
            value={password}
            onChange={setPassword}
            secret
            autoComplete="new-password"
            hint={t("signIn.passwordRule")}
          />
          {invitation ? null : (
            <TextField
              label={t("signIn.workspace")}
              value={workspace}
              onChange={setWorkspace}
              autoComplete="off"
              hint={t("signIn.workspaceHint")}
            />
          )}
        </>
      )}
      {failure ? <Failure error={failure} /> : null}
      <div className="row spread">
        <Link to={paths.signIn()}>{t("signIn.title")}</Link>
        {isDone ? null : (
          <Button submit kind="primary">
            {t("signIn.ask")}
          </Button>
        )}
      </div>
    </Frame>
  );
}
