/** Fields whose values are of any shape. */
export const free =
  /parameters|input_schema|json$|JsonSchema$|schema\.schema$|format\.schema$|input$|args$|response$/;

/** The values in a body, with their paths; what is within a field of any shape is not looked at. */
export function* valuesIn(value: unknown, path: string[] = []): Generator<[path: string[], value: unknown]> {
  yield [path, value];
  if (typeof value !== 'object' || value === null || free.test(path.join('.'))) return;
  for (const [key, inner] of Object.entries(value)) yield* valuesIn(inner, [...path, key]);
}

/** The body with another value at the path. */
export function replace(body: unknown, [key, ...rest]: string[], value: unknown): unknown {
  if (key === undefined) return value;
  const changed = replace((body as Record<string, unknown>)[key], rest, value);
  if (Array.isArray(body)) return body.with(Number(key), changed);
  return { ...(body as object), [key]: changed };
}
