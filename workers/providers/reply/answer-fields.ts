import { z } from 'zod';
import { isObject, type JsonObject, readJson } from '../../../shared/json/json.js';
import type { FinishReason } from '../provider.js';

const toCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** A token count in an answer; a wrong one is treated as not given, since no reply should fail over its bill. */
export const tokenCount = z.unknown().transform(toCount).optional();

/** The token counts of an answer, or the parts of one; what else stands there is treated as not given. */
export const tokenCounts = <Counts extends z.core.$ZodLooseShape>(counts: Counts) =>
  z.object(counts).nullish().catch(undefined);

/**
 * The token counts of one of OpenAI's APIs, by its words for both sides. Tokens that were read from the cache, or
 * written to it, are within the input. Read by hand: a schema for words that it is given took five times as long.
 */
export const openAiUsage = (input: string, output: string) =>
  z
    .unknown()
    .optional()
    .transform((counts) => {
      if (!isObject(counts)) return undefined;
      const inputDetails = fieldsOf(counts[`${input}_tokens_details`]);
      const outputDetails = fieldsOf(counts[`${output}_tokens_details`]);
      return {
        inputTokens: toCount(counts[`${input}_tokens`]),
        outputTokens: toCount(counts[`${output}_tokens`]),
        cachedTokens: toCount(inputDetails.cached_tokens),
        cacheWriteTokens: toCount(inputDetails.cache_write_tokens),
        reasoningTokens: toCount(outputDetails.reasoning_tokens),
      };
    });

const fieldsOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** Counts with those of a later event. Where that has zero, as some servers write for none, the earlier one stays. */
export const laterCounts = <Counts extends object>(
  before: Counts | undefined | null,
  later: Counts,
): Counts => {
  const known: JsonObject = { ...before };
  const changes = Object.entries(later).filter(([name, count]) => count || (count === 0 && !known[name]));
  return { ...known, ...Object.fromEntries(changes) } as Counts;
};

/** All input tokens, where those that were read from the cache, or written to it, are counted beside the others. */
export const withCache = (input?: number, read = 0, written = 0): number | undefined =>
  input === undefined ? undefined : input + read + written;

/** The model that answered; anything that could not stand in a header is treated as not given. */
export const modelName = z
  .string()
  .regex(/^[\x21-\x7e]{1,256}$/)
  .optional()
  .catch(undefined);

const wordOf = (pattern: RegExp) => z.string().regex(pattern).nullish().catch(undefined);

/** The tier of service that answered, as the provider names it. */
export const tierName = wordOf(/^[\w-]{1,32}$/);
/** The provider's id of an answer. */
export const answerId = wordOf(/^[\w.:-]{1,128}$/);

/**
 * The meaning of a provider's word for the end of a reply: `malformed` that its model could not write a call, `broken`
 * that the reply is not finished, and `unknown` that the word is new here.
 */
export type EndWord = FinishReason | 'malformed' | 'broken' | 'unknown';

/** Reads a provider's word for the end of a reply by a table of its words; undefined where there is none. */
export function endReader(table: Words<EndWord>) {
  const meanings = meaningsOf(table);
  return (word: string | null | undefined): EndWord | undefined =>
    word ? (meanings.get(word) ?? 'unknown') : undefined;
}

/** A list of words, from a text with spaces between them. */
export const listOf = (words: string): string[] => words.trim().split(/\s+/);

/** The words for each meaning. */
type Words<Meaning extends string> = Partial<Record<Meaning, readonly string[]>>;

/** The meaning of each word. */
export const meaningsOf = <Meaning extends string>(words: Words<Meaning>): ReadonlyMap<string, Meaning> =>
  new Map(
    (Object.entries(words) as [Meaning, readonly string[]][]).flatMap(([meaning, list]) =>
      list.map((word) => [word, meaning] as const),
    ),
  );

const word = z.string().optional().catch(undefined);
const unread = z.unknown().optional();
const errorFields = z.object({ code: unread, type: unread, details: unread, param: word, message: word });

/**
 * The error in a body: servers that speak OpenAI's protocol also send a text alone, Google's send a list, and those
 * that check a body by a schema, such as Mistral, the places that it refuses, in `detail` or in the message.
 * https://github.com/editor-code-assistant/eca/issues/231
 */
export function errorIn(body: unknown): z.infer<typeof errorFields> {
  const [error] = [body].flat();
  const fields = isObject(error) && isObject(error.error) ? error.error : error;
  if (!isObject(fields)) return errorFields.parse(typeof fields === 'string' ? { message: fields } : {});
  const message = typeof fields.message === 'string' ? readJson(fields.message) : fields.message;
  const [violation] = violationsIn(message ?? fields) ?? violationsIn(fields) ?? [];
  if (!isObject(violation) || !Array.isArray(violation.loc)) return errorFields.parse(fields);
  const param = violation.loc.filter((step) => step !== 'body').join('.');
  return errorFields.parse({ ...fields, param, message: violation.msg });
}

const violationsIn = (value: unknown): unknown[] | undefined =>
  isObject(value) && Array.isArray(value.detail) ? value.detail : Array.isArray(value) ? value : undefined;

/** Reads Google's `details`: https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto */
export const detailsIn = (details: unknown): JsonObject[] => [details].flat().filter(isObject);
