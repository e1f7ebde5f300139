/** An error answer in a provider's format, ready to be sent. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A refusal with a JSON body. */
export function jsonRefusal(status: number, body: object, headers: Record<string, string> = {}): Refusal {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** What a check finds in the first item that it does not pass. */
export function firstFault<T, Found>(
  items: readonly T[],
  check: (item: T, index: number, items: readonly T[]) => Found | undefined,
): Found | undefined {
  for (const [index, item] of items.entries()) {
    const found = check(item, index, items);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The name of a field in a body, such as `top_p`, for the name that this code uses. */
export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Where in a body something is. */
export type Path = readonly (string | number)[];

/** A path with dots only, as in `tools.0.name`. */
export const dotted = (path: Path): string => path.join('.');

/** A path with indexes in brackets, as in `tools[0].name`. */
export const bracketed = (path: Path): string =>
  path.map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${key}`)).join('');
