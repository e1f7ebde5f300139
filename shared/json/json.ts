/** A JSON object with unchecked fields. */
export type JsonObject = Record<string, unknown>;

/** Whether a parsed JSON value is an object: not null, and not an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * JSON text in which U+FFFD stands for each half of a surrogate pair that is written as an escape. Models write such
 * halves, and Anthropic refuses them (RFC 8259, 8.2). Both escapes have six bytes, so that the text changes in place:
 * an expression with a callback takes seconds for 30 MiB of escapes.
 */
export function withWholePairs(text: string): string {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return text;
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== backslash) continue;
    const half = halfAt(bytes, at);
    if (half === 'first' && halfAt(bytes, at + 6) === 'second') at += 11;
    else if (half === undefined) at += 1;
    else bytes.writeUInt32BE(fffd, at + 2);
  }
  return bytes.toString();
}

const [backslash, u, d] = Buffer.from('\\ud');
const fffd = Buffer.from('fffd').readUInt32BE();
/** The value of each byte that is a digit in hexadecimal; -1 for any other. */
const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** Which half of a pair is written as an escape at this place. */
function halfAt(bytes: Buffer, at: number): 'first' | 'second' | undefined {
  const isEscape = bytes[at] === backslash && bytes[at + 1] === u && ((bytes[at + 2] ?? 0) | 32) === d;
  if (!isEscape || at + 6 > bytes.length) return undefined;
  const digitAt = (place: number) => digits[bytes[place] as number] as number;
  const third = digitAt(at + 3);
  if (third < 8 || digitAt(at + 4) < 0 || digitAt(at + 5) < 0) return undefined;
  return third < 12 ? 'first' : 'second';
}

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

type Given<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], null | undefined> };

/** The fields that have a value, neither undefined nor null, for types and SDKs that want no others. */
export const givenFields = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as Given<Fields>;
