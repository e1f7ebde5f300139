import { z } from 'zod';
import { isObject, type JsonObject } from '../../shared/json.js';
import type { FinishReason } from './provider.js';

/** A token count in an answer; a wrong one is treated as not given, since no reply should fail over its bill. */
export const tokenCount = z.number().int().nonnegative().optional().catch(undefined);

/** The parts of a token count; what else stands there is treated as not given. */
export const tokenCounts = <Counts extends Record<string, typeof tokenCount>>(counts: Counts) =>
  z.object(counts).nullish().catch(undefined);

/** The model that answered; anything that could not stand in a header is treated as not given. */
export const modelName = z
  .string()
  .regex(/^[\x21-\x7e]{1,256}$/)
  .optional()
  .catch(undefined);

/**
 * The meaning of a provider's word for the end of a reply: `malformed` that its model could not write a call, `broken`
 * that the reply is not finished, and `unknown` that the word is new here.
 */
export type EndWord = FinishReason | 'malformed' | 'broken' | 'unknown';

/** The meaning of a word by a table of a provider's words; undefined where there is none. */
export const endOf = (
  words: ReadonlyMap<string, EndWord>,
  word: string | null | undefined,
): EndWord | undefined => (word ? (words.get(word) ?? 'unknown') : undefined);

const word = z.string().optional().catch(undefined);
const unread = z.unknown().optional();
const errorFields = z.object({ code: unread, type: unread, details: unread, param: word, message: word });

/** The error in a body: servers that speak OpenAI's protocol also send a text alone, and Google's send a list. */
export function errorIn(body: unknown): z.infer<typeof errorFields> {
  const [error] = [body].flat();
  const fields = isObject(error) && isObject(error.error) ? error.error : error;
  return errorFields.parse(typeof fields === 'string' ? { message: fields } : isObject(fields) ? fields : {});
}

/**
 * The parts of an error's `details`, as Google has them.
 * https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
 */
export const detailsIn = (details: unknown): JsonObject[] => [details].flat().filter(isObject);
