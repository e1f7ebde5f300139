import { parseExactly, rawJSON } from '../../../shared/json/exact-json.js';
import { isObject, readJson } from '../../../shared/json/json.js';

/** JSON of which no number loses a digit: ids of 64 bits are common among the arguments of calls. */

/** Parses the JSON of an answer: exactly, if it has a call whose arguments are an object and not a text. */
export const parseAnswer = (text: string): unknown =>
  argumentsObject.test(text) ? parseExactly(text) : JSON.parse(text);

/** The beginning of such arguments. It is not found within a text, whose quotes are escaped. */
const argumentsObject = /"(input|arguments)"\s*:\s*\{/;

/** A number as the AWS SDK writes it digit by digit. */
export const asNumericValue = (string: string): object => ({ string, type: 'bigDecimal' });

/** Writes JSON, also of BigInt and of the AWS SDK's `NumericValue`. */
const stringifyExactly = (value: unknown): string =>
  JSON.stringify(value, (_, item) => {
    if (typeof item === 'bigint') return rawJSON(String(item));
    return isNumericValue(item) ? rawJSON(item.string) : item;
  });

/** Arguments of a call as JSON text, whether they come so or as a value; undefined for none. */
export function toJsonText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? undefined : stringifyExactly(value);
}

/**
 * Arguments as the JSON text of an object; undefined if they are none. Some servers that speak OpenAI's protocol write
 * `null` where there are none (https://github.com/google/adk-go/pull/1254), and some encode the text once more
 * (https://github.com/tailcallhq/forgecode/pull/2764).
 */
export function toObjectText(text: string): string | undefined {
  const value = text === '' ? null : readJson(text);
  if (typeof value === 'string') return toObjectText(value);
  if (value === null) return '{}';
  return isObject(value) ? text : undefined;
}

/** An object of the model's own has another prototype. */
const isNumericValue = (value: unknown): value is { string: string } =>
  value instanceof Object && Object.getPrototypeOf(value) !== Object.prototype && 'string' in value;
