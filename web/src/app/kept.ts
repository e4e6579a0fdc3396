/** Small choices that this browser keeps. Where it may keep nothing, the default serves. */
export function kept<T extends string>(name: string, allowed: readonly T[], otherwise: T): T {
  try {
    const value = localStorage.getItem(`danlu.${name}`);
    return allowed.find((one) => one === value) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keep(name: string, value: string) {
  try {
    localStorage.setItem(`danlu.${name}`, value);
  } catch {
    // Private windows forbid it; the choice then lasts as long as the page.
  }
}
