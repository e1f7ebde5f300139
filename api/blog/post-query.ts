import type { NextFunction, Request, Response } from 'express';
import { z } from 'zod';
import type { Position, PostFilter } from '../../db/posts/post-store.js';
import type { ProblemError } from '../../shared/contract.js';
import { isBlank } from '../../shared/conversation.js';
import { invalidRequest, text } from '../http/validation.js';

/** Query of `GET /blogs`. */
export interface PostQuery {
  /**
   * Most posts in the answer.
   * @isInt
   * @minimum 1
   * @maximum 200
   * @default 100
   */
  limit?: number;
  /** Where to go on: `next` of the page before, or the `cursor` of its `Link`. */
  cursor?: string;
  /** Only posts with this tag. */
  tag?: string;
  /** Only posts by this author. */
  author?: string;
  /** Only posts whose title or content matches: words, "phrases in quotes", `or`, and `-` for what must not occur. */
  q?: string;
  /**
   * Whether the answer is an object with the posts in `data` and the next cursor in `next`.
   * @default false
   */
  envelope?: boolean;
}

/** What each parameter, as it was sent, is checked for. */
export const postQuery = z
  .object({
    limit: z.string().regex(/^([1-9]\d?|1\d\d|200)$/, { error: 'must be a whole number from 1 to 200' }),
    cursor: z.string().refine((value) => fromCursor(value) !== undefined, 'is not a cursor of this list'),
    tag: text({ most: 50, blank: false }),
    author: text({ most: 200, blank: false }),
    q: text({ most: 500 }),
    envelope: z.enum(['true', 'false'], { error: 'must be true or false' }),
  })
  .partial();

/**
 * Refuses a query that the list of posts cannot have been meant to get. Before the generated check, which would tell it
 * in other words, or not at all. Unknown parameters are no concern of it. Throws `invalid_request`.
 */
export function checkPostQuery(request: Request, _response: Response, next: NextFunction): void {
  const { values, errors } = readQuery(request.originalUrl);
  for (const { path, message } of postQuery.safeParse(values).error?.issues ?? []) {
    errors.push({ pointer: String(path[0]), detail: message });
  }
  if (errors.length > 0) throw invalidRequest(errors);
  // What was checked is what counts: the application's parser leaves out what comes after a thousand parameters.
  Object.defineProperty(request, 'query', { value: values });
  next();
}

/** The known parameters. The application's parser would let undecodable bytes pass as U+FFFD. */
function readQuery(url: string): { values: Record<string, string>; errors: ProblemError[] } {
  const values: Record<string, string> = {};
  const errors: ProblemError[] = [];
  const start = url.indexOf('?');
  for (const pair of start < 0 ? [] : url.slice(start + 1).split('&')) {
    const [name = '', value = ''] = splitOnce(pair).map(decode);
    if (!Object.hasOwn(postQuery.shape, name)) continue;
    if (value === undecodable) errors.push({ pointer: name, detail: 'must be percent-encoded UTF-8' });
    else if (Object.hasOwn(values, name)) errors.push({ pointer: name, detail: 'must be sent once' });
    else values[name] = value;
  }
  return { values, errors };
}

function splitOnce(pair: string): [name: string, value: string] {
  const equals = pair.indexOf('=');
  return equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
}

/** No decoded text has a lone surrogate. */
const undecodable = '\ud800';

function decode(encoded: string): string {
  if (/[^\x20-\x7e]/.test(encoded)) return undecodable;
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    return undecodable;
  }
}

const defaultLimit = 100;

/** The filter that a checked query stands for. A blank `q` is none. */
export function toPostFilter(query: PostQuery, { drafts }: { drafts: boolean }): PostFilter {
  const { limit = defaultLimit, cursor, tag, author, q } = query;
  const after = cursor === undefined ? undefined : fromCursor(cursor);
  return {
    limit,
    drafts,
    ...(after && { after }),
    ...(tag !== undefined && { tag }),
    ...(author !== undefined && { author }),
    ...(q !== undefined && !isBlank(q) && { search: q }),
  };
}

/** The query string of the next page: the same list, from the cursor on. */
export function nextQuery({ cursor: _, ...query }: PostQuery, next: string): string {
  const kept = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value && Object.hasOwn(postQuery.shape, name) ? [[name, String(value)]] : [],
  );
  return new URLSearchParams([...kept, ['cursor', next]]).toString();
}

/** The opaque text for a place in the list. */
export const toCursor = ({ sortedAt, id }: Position): string =>
  Buffer.from(`${sortedAt.getTime()}.${id}`).toString('base64url');

const place = /^(-?\d{1,15})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

function fromCursor(cursor: string): Position | undefined {
  const [, milliseconds, id] = place.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (milliseconds === undefined || id === undefined) return undefined;
  const position = { sortedAt: new Date(Number(milliseconds)), id };
  // Other spellings of the same place were not made here, nor were years that a timestamp in SQL is written otherwise for.
  const year = position.sortedAt.getUTCFullYear();
  return year >= 1 && year <= 9999 && toCursor(position) === cursor ? position : undefined;
}
