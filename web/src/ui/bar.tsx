/** Parts of a whole as lengths; their figures stand beside it in text. */
export type Part = { amount: number; tone: string; label: string };

export function Bar({ parts, total, label }: { parts: Part[]; total: number; label: string }) {
  const whole = Math.max(
    total,
    parts.reduce((sum, part) => sum + part.amount, 0),
    Number.EPSILON,
  );
  return (
    <div className="bar" role="img" aria-label={label} title={label}>
      {parts
        .filter((part) => part.amount > 0)
        .map((part) => (
          <span
            key={part.label}
            title={part.label}
            style={{ width: `${(100 * part.amount) / whole}%`, background: part.tone }}
          />
        ))}
    </div>
  );
}

export function Progress({ done, left }: { done: number; left?: string | undefined }) {
  const percent = Math.round(done * 100);
  return (
    <span className="progress number" title={left}>
      <span
        className="bar"
        role="progressbar"
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-label={`${percent} %`}
      >
        <span style={{ width: `${percent}%`, background: "var(--running)" }} />
      </span>
      {percent} %
    </span>
  );
}
