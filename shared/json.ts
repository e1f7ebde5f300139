/** A JSON object with unchecked fields. */
export type JsonObject = Record<string, unknown>;

/** Whether a parsed JSON value is an object: not null, and not an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A pair of surrogates, a half of one, or any other escape within JSON text. */
const escapes =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|\\./gs;

/**
 * JSON text in which U+FFFD stands for each half of a surrogate pair that is written as an escape. Models write such
 * halves, and Anthropic refuses them (RFC 8259, 8.2).
 */
export const withWholePairs = (text: string): string =>
  text.replace(escapes, (written, half?: string) => (half === undefined ? written : '\\ufffd'));

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
