/** A JSON object with unchecked fields. */
export type JsonObject = Record<string, unknown>;

/** Whether a parsed JSON value is an object: not null, and not an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined for what is no JSON; no error, because the parser's quotes the text. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object that a JSON text is; undefined for any other text. */
export function readObject(text: string): JsonObject | undefined {
  const value = readJson(text);
  return isObject(value) ? value : undefined;
}
