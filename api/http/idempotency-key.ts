import { createHash } from 'node:crypto';
import type { UserIdentity } from '../../db/access/users.js';
import type { PostFields, PostRequest } from '../../db/posts/post-store.js';
import { invalidRequest } from './validation.js';

/**
 * What a request to create a post is known by when it comes again; undefined when it was sent without a key. It is
 * the same request when it asks for the same post, however its body is written. Throws `invalid_request` for a
 * malformed key.
 */
export function onlyOnce(request: {
  user: UserIdentity;
  key: string | undefined;
  fields: PostFields;
}): PostRequest | undefined {
  const { user, fields } = request;
  const key = readIdempotencyKey(request.key);
  if (key === undefined) return undefined;
  return { user, key, hash: createHash('sha256').update(JSON.stringify(fields)).digest() };
}

/**
 * The `Idempotency-Key` header as it was sent. Throws `invalid_request` unless it is 1 to 255 visible ASCII characters;
 * one that is repeated never is, because Node joins the values with a blank.
 */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || /^[\x21-\x7e]{1,255}$/.test(header)) return header;
  throw invalidRequest([{ pointer: 'Idempotency-Key', detail: 'must be 1 to 255 visible ASCII characters' }]);
}
