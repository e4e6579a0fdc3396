import { useTranslation } from "react-i18next";
import { stringify } from "yaml";
import type { JobView } from "../../api/client";
import { Copy } from "../../ui/command";

export function Spec({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const text = stringify(job.spec);
  return (
    <section className="panel">
      <div className="row spread">
        <h2>{t("job.tab.spec")}</h2>
        <Copy text={text} label={t("spec.copy")} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reachable by keyboard */}
      <pre className="text" tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}
