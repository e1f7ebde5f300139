import { z } from 'zod';

/** The form of a user's name: in HTTP Basic a colon ends it (RFC 7617). */
export const userName = z
  .string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') })
  .min(1, { error: 'must not be empty' })
  .max(128, { error: 'must be at most 128 characters' })
  .regex(/^[^:\p{Cc}]*$/u, 'must not contain a colon or control characters');
