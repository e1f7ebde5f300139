/** JSON of which no number loses a digit. */

// Both are ES2025's, which the compiler does not know yet.
const { rawJSON: raw, parse } = JSON as unknown as {
  rawJSON: (text: string) => unknown;
  parse: (
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ) => unknown;
};

/** A number with these digits, which JSON.stringify repeats. */
export const rawJSON = (digits: string): unknown => raw(digits);

/** Parses JSON. `keep` gets the digits of each number that would change; by default JSON.stringify repeats them. */
export const parseExactly = (text: string, keep: (digits: string) => unknown = rawJSON): unknown =>
  parse(text, (_, value, { source = '' }) =>
    typeof value === 'number' && String(value) !== source ? keep(source) : value,
  );
