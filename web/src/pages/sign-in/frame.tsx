/** The frame of the pages that one sees before one is anybody. */
import type { FormEvent, ReactNode } from "react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { chooseLanguage, LANGUAGES, type Language } from "../../i18n";
import { SmallSelect } from "../../ui/controls";

export function Frame({
  title,
  onSubmit,
  children,
}: {
  title: string;
  onSubmit: () => void;
  children: ReactNode;
}) {
  const { t, i18n } = useTranslation();
  useEffect(() => {
    document.title = `${title} · Danlu`;
  }, [title]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  const names: Record<Language, string> = { en: "English", zh: "中文" };
  return (
    <main className="main">
      <div className="card stack">
        <div className="row spread">
          <h1>{title}</h1>
          <SmallSelect
            label={t("profile.language")}
            value={i18n.language}
            onChange={(language) => void chooseLanguage(language as Language)}
            options={LANGUAGES.map((value) => ({ value, label: names[value] }))}
          />
        </div>
        <form className="panel stack" onSubmit={submit}>
          {children}
        </form>
      </div>
    </main>
  );
}

/** What a link carries behind its `#`, which browsers send to nobody. */
export function fragment(name: string): string | undefined {
  return new URLSearchParams(window.location.hash.slice(1)).get(name) ?? undefined;
}
