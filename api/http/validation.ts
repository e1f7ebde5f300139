import { z } from 'zod';
import type { ProblemError } from '../../shared/contract.js';
import { isBlank } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';

/**
 * A text that PostgreSQL can hold (no NUL) of at most so many characters. Characters are code points, as in JSON
 * Schema, not UTF-16 units: an emoji is one.
 */
export function text({ most, blank = true }: { most: number; blank?: boolean }) {
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') })
    .refine((value) => blank || !isBlank(value), 'must not be blank')
    .refine((value) => !value.includes('\0'), 'must not contain NUL characters')
    .refine((value) => hasAtMost(most, value), `must be at most ${most} characters`)
    .meta({ ...(!blank && { minLength: 1, pattern: '\\S' }), maxLength: most });
}

/** Does not count what can be told from the number of UTF-16 units, of which a character has one or two. */
function hasAtMost(most: number, value: string): boolean {
  if (value.length <= most) return true;
  if (value.length > 2 * most) return false;
  let characters = 0;
  for (const _ of value) characters++;
  return characters <= most;
}

/** The failure of a request with these errors, of which the first 20 are told. */
export const invalidRequest = (errors: readonly ProblemError[]): Failure =>
  new Failure('invalid_request', { errors: errors.slice(0, maxErrorsTold) });

/** Errors that one problem names. */
export const maxErrorsTold = 20;
