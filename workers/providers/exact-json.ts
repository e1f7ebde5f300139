/** JSON of which no number loses a digit: ids of 64 bits are common among the arguments of calls. */

// Both are ES2025's, which the compiler does not know yet.
const { rawJSON, parse } = JSON as unknown as {
  rawJSON: (text: string) => unknown;
  parse: (
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ) => unknown;
};

/** Parses JSON. `keep` gets the digits of each number that would change; by default JSON.stringify repeats them. */
export const parseExactly = (text: string, keep: (digits: string) => unknown = rawJSON): unknown =>
  parse(text, (_, value, { source = '' }) =>
    typeof value === 'number' && String(value) !== source ? keep(source) : value,
  );

/** Parses the JSON of an answer: exactly, if it has a call whose arguments are an object and not a text. */
export const parseAnswer = (text: string): unknown =>
  argumentsObject.test(text) ? parseExactly(text) : JSON.parse(text);

/** Not found within a text, whose quotes are escaped. */
const argumentsObject = /"input"\s*:\s*\{/;

/** A number as the AWS SDK writes it digit by digit. */
export const asNumericValue = (string: string): object => ({ string, type: 'bigDecimal' });

/** Writes JSON, also of BigInt and of the AWS SDK's `NumericValue`. */
export const stringifyExactly = (value: unknown): string =>
  JSON.stringify(value, (_, item) => {
    if (typeof item === 'bigint') return rawJSON(String(item));
    return isNumericValue(item) ? rawJSON(item.string) : item;
  });

/** An object of the model's own has another prototype. */
const isNumericValue = (value: unknown): value is { string: string } =>
  value instanceof Object && Object.getPrototypeOf(value) !== Object.prototype && 'string' in value;
