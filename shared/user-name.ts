import { z } from 'zod';

/** What a user may be called: in HTTP Basic a colon ends the name (RFC 7617). */
export const userName = z
  .string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') })
  .min(1, { error: 'must not be empty' })
  .max(128, { error: 'must be at most 128 characters' })
  .regex(/^[^:\p{Cc}]*$/u, 'must not contain a colon or control characters');
