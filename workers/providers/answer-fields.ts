import { z } from 'zod';

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

/** Undefined for what is no JSON; no error, because the parser's quotes the text. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object that a JSON text is; undefined for any other text. */
export function readObject(text: string): Record<string, unknown> | undefined {
  const value = readJson(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : undefined;
}
