import { z } from 'zod';

/** A schema for JSON text in a message: PostgreSQL's jsonb refuses U+0000, which such a text has only escaped. */
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
