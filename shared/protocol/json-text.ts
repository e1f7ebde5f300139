import { z } from 'zod';

/**
 * A schema for JSON text within a message. Texts of people and models cross the queue as such a string, because
 * PostgreSQL's jsonb refuses the character U+0000, which JSON text only ever holds in its escaped form.
 */
export function jsonText<T extends z.ZodType>(schema: T) {
  const parse = (text: string, context: z.RefinementCtx): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      // The parser's own message quotes the text.
      context.addIssue('is not JSON');
      return z.NEVER;
    }
  };
  return z.string().transform(parse).pipe(schema);
}
