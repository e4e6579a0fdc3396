import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { answer, api } from "../../api/client";
import { paths } from "../../app/paths";
import { Failure } from "../../ui/answer";
import { Button, TextField } from "../../ui/controls";
import { Frame } from "./frame";

export function Register() {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [failure, setFailure] = useState<unknown>();
  const [isDone, setDone] = useState(false);
  const register = async () => {
    setFailure(undefined);
    try {
      await answer(api.POST("/registration", { body: { name, email: email || null, password } }));
      setDone(true);
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <Frame title={t("signIn.register")} onSubmit={() => void register()}>
      {isDone ? (
        <p role="status">{t("signIn.waiting")}</p>
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
