/** Words of the console. The language is loaded before anything is shown, and the other only when it is chosen. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { keep, kept } from "../app/kept";
import type { en } from "./en";

export const LANGUAGES = ["en", "zh"] as const;
export type Language = (typeof LANGUAGES)[number];

declare module "i18next" {
  interface CustomTypeOptions {
    resources: { translation: typeof en };
  }
}

const LOADERS: Record<Language, () => Promise<object>> = {
  en: () => import("./en").then((module) => module.en),
  zh: () => import("./zh").then((module) => module.zh),
};

function preferred(): Language {
  return kept("language", LANGUAGES, navigator.language.startsWith("zh") ? "zh" : "en");
}

export async function startLanguage() {
  const lng = preferred();
  await i18next.use(initReactI18next).init({
    lng,
    resources: { [lng]: { translation: await LOADERS[lng]() } },
    interpolation: { escapeValue: false },
  });
  document.documentElement.lang = lng;
}

export async function chooseLanguage(language: Language) {
  if (!i18next.hasResourceBundle(language, "translation")) {
    i18next.addResourceBundle(language, "translation", await LOADERS[language]());
  }
  keep("language", language);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
}
