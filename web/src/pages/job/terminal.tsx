/** A shell inside a worker. */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobView } from "../../api/client";
import { useObstacle } from "../../app/session";
import { Button, SmallSelect } from "../../ui/controls";
import { heard, openFrame, resizeFrame, stdinFrame } from "./session";

export function Terminal({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const [worker, setWorker] = useState(0);
  const [sessions, setSessions] = useState(0);
  const notYours = useObstacle().changeJob(job);
  const isRunning = job.state === "running";
  if (!isRunning || notYours) return <div className="note">{notYours ?? t("terminal.notRunning")}</div>;
  return (
    <>
      <div className="log-tools">
        <SmallSelect
          label={t("job.worker")}
          value={String(worker)}
          onChange={(value) => setWorker(Number(value))}
          options={Array.from({ length: job.spec.workers ?? 1 }, (_, index) => ({
            value: String(index),
            label: t("metrics.worker", { number: index }),
          }))}
        />
        <Button small onClick={() => setSessions((count) => count + 1)}>
          {t("terminal.again")}
        </Button>
      </div>
      <Session key={`${worker}.${sessions}`} id={job.id} worker={worker} />
    </>
  );
}

function Session({ id, worker }: { id: number; worker: number }) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [end, setEnd] = useState<string>();
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const terminal = new Xterm({
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      fontSize: 13,
      cursorBlink: false,
      theme: { background: "#101418", foreground: "#e6e9ed" },
      screenReaderMode: true,
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(element);
    fit.fit();
    const address = `${window.location.origin.replace(/^http/, "ws")}/api/v1/jobs/${id}/workers/${worker}/session`;
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    const size = () => ({ rows: terminal.rows, columns: terminal.cols });
    socket.onopen = () => {
      socket.send(openFrame(size()));
      terminal.focus();
    };
    socket.onmessage = (event: MessageEvent<ArrayBuffer>) => {
      const said = heard(event.data);
      if (said?.type === "output") terminal.write(said.bytes);
      else if (said?.type === "exit") setEnd(t("terminal.exit", { code: said.code }));
      else if (said?.type === "error") setEnd(said.text);
    };
    socket.onclose = () => setEnd((before) => before ?? t("terminal.closed"));
    const typed = terminal.onData((text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(stdinFrame(text));
    });
    const resized = terminal.onResize(() => {
      if (socket.readyState === WebSocket.OPEN) socket.send(resizeFrame(size()));
    });
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(element);
    return () => {
      observer.disconnect();
      typed.dispose();
      resized.dispose();
      socket.onclose = null;
      socket.close();
      terminal.dispose();
    };
  }, [id, worker, t]);
  return (
    <>
      {end ? (
        <div className="banner" role="status">
          <p>{end}</p>
        </div>
      ) : null}
      <section className="terminal" ref={box} aria-label={t("terminal.title")} />
    </>
  );
}
