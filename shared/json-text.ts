import { z } from 'zod';

/**
 * A schema for JSON text within a message. Whatever people or models wrote crosses the queue as such a string, because
 * PostgreSQL's jsonb refuses the character U+0000, which JSON text only ever holds in its escaped form.
 */
export function jsonText<T extends z.ZodType>(schema: T) {
  return z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema);
}
