import type { Change, Removal, Unchanged } from '../../db/posts/post-changes.js';
import type { PostRevision } from '../../db/posts/post-rows.js';
import { Failure } from '../../shared/failures.js';
import { invalidRequest } from '../../shared/validation.js';
import { parseTags, tagAsSent } from '../http/conditional.js';

/**
 * The strong entity tag (RFC 9110, 8.8.3) of a version of a post: as JSON, or with the suffix `-md` or
 * `-html-<edition of the page>` as another representation.
 */
export function etagOf({ version, updatedAt }: PostRevision, suffix = ''): string {
  return `"${version}-${Date.parse(updatedAt).toString(36)}${suffix}"`;
}

/**
 * The versions in `If-Match` (RFC 9110, 13.1.1), one of which must be current for a write; undefined when any will do.
 * The tag of any representation stands for its version, also as a weak tag: RFC 9110 lets only strong ones match, but a
 * version stays the same however a proxy compresses it, and behind such a proxy no write could succeed otherwise.
 * Throws `invalid_request` unless the header is a list of tags.
 */
export function expectedVersions(ifMatch: string | undefined): readonly PostRevision[] | undefined {
  if (ifMatch === undefined) return undefined;
  const tags = parseTags(ifMatch);
  if (tags === undefined) {
    throw invalidRequest([{ pointer: 'If-Match', detail: 'must be * or a list of entity tags' }]);
  }
  return tags === '*' ? undefined : tags.flatMap(toVersion);
}

/** The result of a write that happened. Throws `not_found`, or `precondition_failed` with the post's current tag. */
export function requireSuccess<Result extends Change | Removal>(result: Result): Exclude<Result, Unchanged> {
  if (result.kind === 'missing') throw new Failure('not_found');
  if (result.kind === 'stale')
    throw new Failure('precondition_failed', { headers: { ETag: etagOf(result.current) } });
  return result as Exclude<Result, Unchanged>;
}

/** A tag that this server never sent matches no version. */
function toVersion(tag: string): PostRevision[] {
  const [, version, milliseconds] =
    /^"([1-9]\d{0,9})-(-?[0-9a-z]{1,10})(?:-md|-html(?:-[0-9a-z]{1,16})?)?"$/.exec(tagAsSent(tag)) ?? [];
  if (version === undefined || milliseconds === undefined) return [];
  const updatedAt = new Date(Number.parseInt(milliseconds, 36)).toISOString();
  // PostgreSQL cannot read values beyond these, and no post has them.
  if (Number(version) > maxInteger || !/^(?!0000)\d{4}-/.test(updatedAt)) return [];
  return [{ version: Number(version), updatedAt }];
}

const maxInteger = 2 ** 31 - 1;
