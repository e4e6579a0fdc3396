/** A second proof beside the password. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useTotpConfirm, useTotpEnrol, useTotpRemove } from "../../api/changes";
import type { AccountView } from "../../api/client";
import { Failure } from "../../ui/answer";
import { Button, TextField } from "../../ui/controls";

export function Authenticator({ account }: { account: AccountView }) {
  const { t } = useTranslation();
  const [enrol, confirm, remove] = [useTotpEnrol(), useTotpConfirm(), useTotpRemove()];
  const [code, setCode] = useState("");
  const [password, setPassword] = useState("");
  const error = enrol.error ?? confirm.error ?? remove.error;
  const isOn = account.second_factor;
  const startAgain = () => {
    setCode("");
    enrol.reset();
  };
  const submit = () => {
    const after = { onSuccess: () => setCode("") };
    if (isOn) remove.mutate({ name: account.name, code }, { onSuccess: startAgain });
    else if (!enrol.data)
      enrol.mutate({ name: account.name, password }, { onSuccess: () => setPassword("") });
    else confirm.mutate({ name: account.name, code }, after);
  };
  return (
    <form
      className="panel stack"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <h2>{t("totp.title")}</h2>
      <p style={{ margin: 0 }}>{isOn ? t("totp.on") : t("totp.off")}</p>
      {enrol.data && !isOn ? (
        <>
          <p style={{ margin: 0 }}>{t("totp.enter")}</p>
          <code style={{ overflowWrap: "anywhere" }}>{enrol.data.secret}</code>
          <a href={enrol.data.address}>{t("totp.open")}</a>
        </>
      ) : null}
      {isOn || enrol.data ? (
        <TextField label={t("signIn.code")} value={code} onChange={setCode} autoComplete="one-time-code" />
      ) : (
        <TextField
          label={t("profile.current")}
          value={password}
          onChange={setPassword}
          secret
          autoComplete="current-password"
          hint={t("totp.password")}
        />
      )}
      {error ? <Failure error={error} /> : null}
      {confirm.data ? (
        <div className="banner good" role="status">
          <div>
            <p>{t("totp.recovery")}</p>
            <code>{confirm.data.codes.join(" ")}</code>
          </div>
        </div>
      ) : null}
      <div>
        {isOn ? (
          <Button submit>{t("totp.remove")}</Button>
        ) : enrol.data ? (
          <Button submit>{t("totp.confirm")}</Button>
        ) : (
          <Button submit>{t("totp.begin")}</Button>
        )}
      </div>
    </form>
  );
}
