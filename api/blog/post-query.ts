import type { NextFunction, Request, Response } from 'express';
import { z } from 'zod';
import type { Position, PostFilter } from '../../db/posts/post-lists.js';
import { slug } from '../../db/posts/post-rules.js';
import type { PostStatus } from '../../shared/contracts/contract.js';
import { isBlank } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import { text } from '../../shared/validation.js';
import { checkQuery, defaultLimit, isUuid, type PageQuery, pageLimit } from '../http/query.js';

/** Query of `GET /blogs`. */
export interface PostQuery extends PageQuery {
  /** Where to continue: `next` of the previous page, or the `cursor` in its `Link`; "Newer posts" leads back. */
  cursor?: string;
  /** Only posts with this tag. */
  tag?: string;
  /** Only posts by this author. */
  author?: string;
  /** Only posts whose title or content matches: words, "quoted phrases", `or`, and `-` to exclude a word. */
  q?: string;
  /** Only posts with this status. Drafts are found only by tokens that may write; for others there are none. */
  status?: PostStatus;
  /**
   * Whether the answer is an object with the posts in `data` and the next cursor in `next`.
   * @default false
   */
  envelope?: boolean;
}

/** The parameters of a query that are known so far. */
export type PostQueryValues = { [Name in keyof PostQuery]?: PostQuery[Name] | undefined };

/** Checks each parameter as it was sent. */
export const postQuery = z
  .object({
    limit: pageLimit,
    cursor: z.string().refine((value) => fromCursor(value) !== undefined, 'is not a cursor of this list'),
    tag: text({ max: 50, blank: false }),
    author: text({ max: 200, blank: false }),
    q: text({ max: 500 }),
    status: z.enum(['published', 'draft'], { error: 'must be published or draft' }),
    envelope: z.enum(['true', 'false'], { error: 'must be true or false' }),
  })
  .partial();

/** See `checkQuery`. */
export const checkPostQuery = checkQuery(postQuery);

/** Throws `not_found` unless the `id` of the path can be the id or the slug of a post. */
export function checkPostReference(
  { params: { id } }: Request,
  _response: Response,
  next: NextFunction,
): void {
  if (!isUuid(String(id)) && !slug.safeParse(id).success) throw new Failure('not_found');
  next();
}

/** The filter that a checked query describes, but for who asks. A blank `q` filters nothing. */
export function toPostFilter(query: PostQueryValues): Omit<PostFilter, 'drafts'> {
  const { limit = defaultLimit, cursor, tag, author, q, status } = query;
  return {
    limit,
    tag,
    author,
    status,
    // The words of the posts stand in the search index in this form.
    search: q === undefined || isBlank(q) ? undefined : q.normalize('NFC'),
    ...(cursor !== undefined && fromCursor(cursor)),
  };
}

/** The query string of these parameters, without those that are blank or unknown. */
export const queryOf = (values: PostQueryValues): string =>
  new URLSearchParams(
    Object.entries(values).flatMap(([name, value]): [string, string][] =>
      value && Object.hasOwn(postQuery.shape, name) ? [[name, String(value)]] : [],
    ),
  ).toString();

/** The opaque text for the older posts after a position in the list. */
export const toCursor = (position: Position): string => encodeCursor(position, '');

/** The opaque text for the newer posts before a position in the list. */
export const toNewerCursor = (position: Position): string => encodeCursor(position, newer);

/** Before the position in a cursor that leads back. */
const newer = 'newer.';

const encodeCursor = ({ sortedAt, id }: Position, direction: string): string =>
  Buffer.from(`${direction}${sortedAt.getTime()}.${id}`).toString('base64url');

const cursorPattern = /^(newer\.|)(-?\d{1,15})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

function fromCursor(cursor: string): Pick<PostFilter, 'after' | 'before'> | undefined {
  const [, direction = '', milliseconds, id] =
    cursorPattern.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (milliseconds === undefined || id === undefined) return undefined;
  const position = { sortedAt: new Date(Number(milliseconds)), id };
  // This server writes no other spelling of a position, and no year that SQL writes differently.
  const year = position.sortedAt.getUTCFullYear();
  if (year < 1 || year > 9999 || encodeCursor(position, direction) !== cursor) return undefined;
  return direction === newer ? { before: position } : { after: position };
}
