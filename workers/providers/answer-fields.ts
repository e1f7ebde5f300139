import { z } from 'zod';
import type { EndWord } from './provider-call.js';

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

/** The meaning of a provider's word for the end of a reply, by a table of its words; undefined where there is none. */
export const endOf = (
  words: ReadonlyMap<string, EndWord>,
  word: string | null | undefined,
): EndWord | undefined => (word ? (words.get(word) ?? 'unknown') : undefined);
