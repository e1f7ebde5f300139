import type { PostVersionMark, Unchanged } from '../../db/posts/post-store.js';
import { Failure } from '../../shared/failures.js';
import { invalidRequest } from '../http/validation.js';

/**
 * The strong entity tag (RFC 9110, 8.8.3) of a version of a post as JSON, and with `-md` or `-html-<edition of the
 * page>` as another representation.
 */
export function etagOf({ version, updatedAt }: PostVersionMark, suffix = ''): string {
  return `"${version}-${Date.parse(updatedAt).toString(36)}${suffix}"`;
}

/** Whether the client has this very thing already: If-None-Match, compared weakly (RFC 9110, 13.1.2). */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = parseTags(ifNoneMatch);
  return tags === '*' || (tags?.some((tag) => tag.replace(/^W\//, '') === etag) ?? false);
}

/**
 * The versions of which a write has to meet one, from If-Match (RFC 9110, 13.1.1); undefined when any will do. The tag
 * of any representation stands for its version. Throws `invalid_request` for what is not a list of tags.
 */
export function expectedVersions(ifMatch: string | undefined): readonly PostVersionMark[] | undefined {
  if (ifMatch === undefined) return undefined;
  const tags = parseTags(ifMatch);
  if (tags === undefined) {
    throw invalidRequest([{ pointer: 'If-Match', detail: 'must be * or a list of entity tags' }]);
  }
  return tags === '*' ? undefined : tags.flatMap(toVersion);
}

/** The failure of a write that did not happen; of a post that has changed it tells the current entity tag. */
export const refusalOf = (refusal: Unchanged): Failure =>
  refusal.kind === 'missing'
    ? new Failure('not_found')
    : new Failure('precondition_failed', { headers: { ETag: etagOf(refusal.current) } });

/**
 * One element of a list of tags with the comma behind it; elements may be empty. Blanks stand in it twice with a tag
 * between them: side by side they would be tried in every combination.
 */
const element = /[ \t]*(?:((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(,|$)/y;

function parseTags(header: string): string[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  const tags: string[] = [];
  const matcher = new RegExp(element);
  for (let end = false; !end; ) {
    const match = matcher.exec(header);
    if (match === null) return undefined;
    if (match[1] !== undefined) tags.push(match[1]);
    end = match[2] === '';
  }
  return tags.length > 0 ? tags : undefined;
}

/** A tag that was never ours, or is weak, matches no version. */
function toVersion(tag: string): PostVersionMark[] {
  const [, version, milliseconds] =
    /^"([1-9]\d{0,9})-(-?[0-9a-z]{1,10})(?:-md|-html(?:-[0-9a-z]{1,16})?)?"$/.exec(tag) ?? [];
  if (version === undefined || milliseconds === undefined) return [];
  const updatedAt = new Date(Number.parseInt(milliseconds, 36)).toISOString();
  // What no post can have, PostgreSQL could not read.
  if (Number(version) > greatestInteger || !/^(?!0000)\d{4}-/.test(updatedAt)) return [];
  return [{ version: Number(version), updatedAt }];
}

const greatestInteger = 2 ** 31 - 1;
