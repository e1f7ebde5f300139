import { isObject, type JsonObject } from '../../shared/json/json.js';
import type { Path } from './wire-format.js';

/** A rule for a value, in words and as a test. */
export interface Expected {
  readonly words: string;
  holds(value: unknown): boolean;
  /** The only fields that an object may have. */
  readonly fields?: readonly string[];
}

/** The rules for places such as `messages.*.role!`: `*` is each item of a list, and `!` what is needed. */
export type Shape = Readonly<Record<string, Expected>>;

const expected = (words: string, holds: (value: unknown) => boolean): Expected => ({ words, holds });
const between = (least: number, most: number): string =>
  `from ${least}${most === Infinity ? '' : ` to ${most}`}`;

export const someText = expected(
  'a text that is not empty',
  (value) => typeof value === 'string' && value !== '',
);
export const list = (least = 0, most = Infinity): Expected =>
  expected(`a list of a length ${between(least, most)}`, (value) => {
    return Array.isArray(value) && value.length >= least && value.length <= most;
  });
/** A text, or a list of texts or parts. */
export const texts = (least: number, most = Infinity): Expected =>
  expected(`a text, or ${list(least, most).words}`, (value) => {
    return typeof value === 'string' || list(least, most).holds(value);
  });
export const number = (least: number, most: number): Expected =>
  expected(`a number ${between(least, most)}`, (value) => {
    return typeof value === 'number' && value >= least && value <= most;
  });
export const integer = (least = -Infinity, most = Infinity): Expected =>
  expected(`an integer ${between(least, most)}`, (value) => {
    return Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
  });
export const matching = (pattern: RegExp): Expected =>
  expected(`a text like ${pattern}`, (value) => typeof value === 'string' && pattern.test(value));
export const oneOf = (names: string): Expected =>
  expected(`one of ${names}`, (value) => typeof value === 'string' && names.split(' ').includes(value));
export const oneOfOr = (names: string): Expected =>
  expected(`one of ${names}, or an object`, (value) => isObject(value) || oneOf(names).holds(value));

/** An object without other fields. */
export const object = (names: string): Expected => ({
  ...expected('an object', isObject),
  fields: names.split(/\s+/),
});

/** An object with one of these fields, and no other. */
export const oneField = (names: string): Expected => ({
  ...expected(`one of the fields ${names}`, (value) => isObject(value) && Object.keys(value).length === 1),
  fields: names.split(/\s+/),
});

/** The first place of a body with another value than is expected, in the order of the shape; null counts as absent. */
export function findFault(body: JsonObject, shape: Shape): [place: Path, expected: string] | undefined {
  for (const [place, { words, holds, fields }] of Object.entries(shape)) {
    const keys = place.replace('!', '').split('.').filter(Boolean);
    for (const { path, value } of valuesAt(body, keys)) {
      if (value == null ? place.endsWith('!') : !holds(value)) return [path, words];
      const other = fields && Object.keys(Object(value)).find((name) => !fields.includes(name));
      if (other !== undefined) return [[...path, other], 'no such field'];
    }
  }
  return undefined;
}

/** The values at a place, absent ones of objects that are there as well. */
function* valuesAt(
  value: unknown,
  [key, ...rest]: readonly string[],
  path: Path = [],
): Generator<{ path: Path; value: unknown }> {
  if (key === undefined) yield { path, value };
  else if (key !== '*') {
    if (isObject(value)) yield* valuesAt(value[key], rest, [...path, key]);
  } else if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* valuesAt(item, rest, [...path, index]);
}
