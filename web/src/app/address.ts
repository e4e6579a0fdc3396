/** What the address says behind its `?`, and how to change it. */
import { useSearchParams } from "react-router";

type Changes = Record<string, string | undefined>;

/** With some values changed; empty ones are left out. */
function changed(changes: Changes): URLSearchParams {
  // The address itself and not what was last drawn: two changes may come between two drawings.
  const next = new URLSearchParams(window.location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  return next;
}

export function useAddress() {
  const [query, setQuery] = useSearchParams();
  return {
    query,
    /** Changes the address. With `replace`, going back does not stop here: for what is typed. */
    set: (changes: Changes, how: { replace: boolean } = { replace: true }) => setQuery(changed(changes), how),
    /** The `?…` of a link that changes it. */
    with: (changes: Changes) => {
      const text = changed(changes).toString();
      return text ? `?${text}` : "";
    },
  };
}
