/** The dialog in which people show that a session is theirs. */
import { type ReactNode, useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Refusal } from "../api/client";
import { type AskForProof, type Proof, ProofContext, type ProofField } from "../api/proof";
import { Failure } from "../ui/answer";
import { Dialog, TextField } from "../ui/controls";
import { useMe } from "./session";

type Question = {
  field: ProofField;
  refusal: Refusal | undefined;
  answer: (proof: Proof | undefined) => void;
};

export function ProofProvider({ children }: { children: ReactNode }) {
  const [question, setQuestion] = useState<Question>();
  const ask = useCallback<AskForProof>(
    (field, refusal) =>
      new Promise((resolve) => {
        const answer = (proof: Proof | undefined) => {
          setQuestion(undefined);
          resolve(proof);
        };
        setQuestion({ field, refusal, answer });
      }),
    [],
  );
  return (
    <ProofContext value={ask}>
      {children}
      {question ? <ProofDialog {...question} /> : null}
    </ProofContext>
  );
}

function ProofDialog({ field, refusal, answer }: Question) {
  const { t } = useTranslation();
  const { second_factor: hasMfa } = useMe().account;
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const needsPassword = field === "password";
  const needsCode = field === "code" || hasMfa;
  const blocked = ((needsPassword && !password) || (needsCode && !code)) && t("proof.incomplete");
  return (
    <Dialog
      title={t("proof.title")}
      action={t("common.confirm")}
      blocked={blocked}
      onConfirm={() => answer({ ...(needsPassword ? { password } : {}), ...(needsCode ? { code } : {}) })}
      onCancel={() => answer(undefined)}
    >
      <p>{t("proof.text")}</p>
      {needsPassword ? (
        <TextField
          label={t("profile.current")}
          value={password}
          onChange={setPassword}
          secret
          autoFocus
          autoComplete="current-password"
        />
      ) : null}
      {needsCode ? (
        <TextField
          label={t("signIn.code")}
          value={code}
          onChange={setCode}
          autoFocus={!needsPassword}
          autoComplete="one-time-code"
        />
      ) : null}
      {refusal ? <Failure error={refusal} /> : null}
    </Dialog>
  );
}
