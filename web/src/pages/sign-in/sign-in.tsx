import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation, useNavigate } from "react-router";
import { answer, api, type Refusal } from "../../api/client";
import { paths } from "../../app/paths";
import { Failure } from "../../ui/answer";
import { Button, TextField } from "../../ui/controls";
import { Frame, fragment } from "./frame";

type Credentials = { link: string } | { name: string; password: string };

export function SignIn() {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [failure, setFailure] = useState<Refusal>();
  const [busy, setBusy] = useState(false);
  const client = useQueryClient();
  const navigate = useNavigate();
  const location = useLocation();
  const from = (location.state as { from?: string } | null)?.from ?? paths.overview();

  const enter = async (credentials: Credentials) => {
    setBusy(true);
    setFailure(undefined);
    try {
      await answer(api.POST("/session", { body: credentials }));
      client.clear();
      await navigate(from, { replace: true });
    } catch (error) {
      setFailure(error as Refusal);
      setBusy(false);
    }
  };

  // A link signs in once: a second try with it would be refused, so it is made once however often we are drawn.
  const tried = useRef(false);
  const link = fragment("link");
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the link matters, and it is tried once
  useEffect(() => {
    if (!link || tried.current) return;
    tried.current = true;
    window.history.replaceState(null, "", paths.signIn());
    void enter({ link });
  }, [link]);

  return (
    <Frame title={t("signIn.title")} onSubmit={() => void enter({ name, password })}>
      <TextField label={t("signIn.name")} value={name} onChange={setName} autoComplete="username" autoFocus />
      <TextField
        label={t("signIn.password")}
        value={password}
        onChange={setPassword}
        secret
        autoComplete="current-password"
      />
      {failure ? <Failure error={failure} /> : null}
      <div className="row spread">
        <Link to="/register">{t("signIn.register")}</Link>
        <Button submit kind="primary" busy={busy}>
          {t("signIn.enter")}
        </Button>
      </div>
    </Frame>
  );
}
