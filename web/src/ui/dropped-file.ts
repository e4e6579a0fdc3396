/** Files that are dropped anywhere on a page. */
import { useEffect, useRef } from "react";

export function useDroppedFile(onFile: (file: File) => unknown) {
  const latest = useRef(onFile);
  latest.current = onFile;
  useEffect(() => {
    const isFile = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const allow = (event: DragEvent) => {
      // Without this the browser opens the file instead of the page.
      if (isFile(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      const [file] = event.dataTransfer?.files ?? [];
      if (!isFile(event)) return;
      event.preventDefault();
      if (file) latest.current(file);
    };
    window.addEventListener("dragover", allow);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", allow);
      window.removeEventListener("drop", drop);
    };
  }, []);
}
