import { z } from 'zod';
import type { ProblemError } from './contracts/contract.js';
import { isBlank } from './conversation.js';
import { Failure } from './failures.js';

/** Checks a text that PostgreSQL can store (no NUL), of at most `max` code points, as JSON Schema counts them. */
export const text = ({ max, blank = true }: { max: number; blank?: boolean }) =>
  z
    .string()
    .refine((value) => blank || !isBlank(value), 'must not be blank')
    .refine((value) => !value.includes('\0'), 'must not contain NUL characters')
    .refine((value) => hasAtMost(max, value), `must be at most ${max} characters`)
    .meta({ ...(!blank && { minLength: 1, pattern: '\\S' }), maxLength: max });

/** As `text`, for one line: trims both ends, and refuses what can be neither seen nor typed within. */
export const line = ({ max, blank = true }: { max: number; blank?: boolean }) =>
  z
    .string()
    .overwrite((value) => value.replace(ends, ''))
    .refine((value) => blank || !isBlank(value), 'must not be blank')
    .refine((value) => !unseen.test(value), 'must not contain line ends or invisible characters')
    .refine((value) => hasAtMost(max, value), `must be at most ${max} characters`)
    .meta({ ...(!blank && { minLength: 1, pattern: '\\S' }), maxLength: max });

/** Not the joiners, variation selectors and tags, which shape letters and emoji. */
const unseen =
  /[[\p{Cc}\p{Zl}\p{Zp}\p{DI}]--[\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\u{e0020}-\u{e007f}\u{e0100}-\u{e01ef}]]/v;
const atEnd = `(?:[\\s\\u200c\\u200d]|${unseen.source})`;
/** The look behind keeps this linear: a run is looked through from its beginning alone. */
const ends = new RegExp(`^${atEnd}+|(?<!${atEnd})${atEnd}+$`, 'gv');

/** A day of the calendar, of years that the databases know too. */
export const day = z.iso
  .date({ error: 'must be a day such as 2026-12-01' })
  .refine((value) => value >= '2000', 'must be of 2000 or later');

/** A character has one or two UTF-16 units, so only lengths in between need counting. */
const hasAtMost = (max: number, value: string): boolean =>
  value.length <= max || (value.length <= 2 * max && [...value].length <= max);

/** A JSON body of the schema. Throws `invalid_request` with a pointer to each place that is wrong. */
export function parseBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const { data, errors } = check(schema, body);
  if (errors.length > 0) throw invalidRequest(errors);
  return data as z.output<T>;
}

/** A value as the schema makes it, with a pointer to each place that is wrong; `data` is undefined if one is. */
export function check<T extends z.ZodType>(
  schema: T,
  value: unknown,
): { data: z.output<T> | undefined; errors: ProblemError[] } {
  const { data, error } = schema.safeParse(value, { error: describeIssue });
  const errors = (error?.issues ?? []).map(({ path, message }) => ({
    pointer: path.map((step) => `/${String(step)}`).join(''),
    detail: message,
  }));
  return { data, errors };
}

/** Says what is wrong with a value whose schema does not. In our words: the library's may quote the request. */
export function describeIssue(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required';
      return `must be ${typeNames.get(issue.expected) ?? 'of another type'}`;
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}${unitOf(issue)}`;
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${unitOf(issue)}`;
    case 'invalid_value':
      return `must be one of: ${issue.values.join(', ')}`;
    case 'unrecognized_keys':
      // Their names are the caller's own.
      return 'must have no other fields than the documented ones';
    default:
      return 'has a value that is not allowed';
  }
}

const unitOf = ({ origin }: { origin: string }): string => (origin === 'string' ? ' characters' : '');

const typeNames: ReadonlyMap<string, string> = new Map([
  ['string', 'a string'],
  ['number', 'a number'],
  ['int', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'an array'],
  ['object', 'an object'],
]);

/** The failure of a request with these errors, of which the answer lists the first 20. */
export const invalidRequest = (errors: readonly ProblemError[]): Failure =>
  new Failure('invalid_request', { errors: errors.slice(0, maxErrorsListed) });

/** As `invalidRequest`, for one error. */
export const invalid = (pointer: string, detail: string): Failure => invalidRequest([{ pointer, detail }]);

/** Errors that one problem lists. */
export const maxErrorsListed = 20;
