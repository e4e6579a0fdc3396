/** Sentences whose names and numbers the server gives. Pure. */

/** The template with its places filled, or nothing where one of them is not known. */
export function filled(template: string, values: Record<string, string>): string | undefined {
  let isWhole = template !== "";
  const text = template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) isWhole = false;
    return value ?? "";
  });
  return isWhole ? text : undefined;
}
