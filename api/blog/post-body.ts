import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { UserIdentity } from '../../db/access/users.js';
import type { PostFields, PostRequest } from '../../db/posts/post-creation.js';
import { postInput, type postPatch } from '../../db/posts/post-rules.js';
import { isObject } from '../../shared/json/json.js';
import { checkFields } from '../http/json-body.js';
import { readIdempotencyKey, unknownFieldsOf } from '../http/query.js';

/** Checks the body of a post, and leaves only its fields; throws as `checkFields`. */
export const checkPost = (schema: typeof postInput | typeof postPatch): RequestHandler =>
  checkFields(schema, unknownFields);

const writable = new Set(Object.keys(postInput.shape));
const readOnly = new Set(['id', 'publishedAt', 'createdAt', 'updatedAt', 'version']);

function unknownFields(body: unknown) {
  if (!isObject(body)) return [];
  return unknownFieldsOf(body, writable).map((field) => ({
    ...field,
    detail: readOnly.has(field.name) ? 'is read-only' : 'is not a field of a post',
  }));
}

/**
 * The identity of a retry of a request to create a post; undefined without a key. Requests are the same when they
 * describe the same post, however their bodies are written. Throws `invalid_request` for a malformed key.
 */
export function toPostRequest(request: {
  user: UserIdentity;
  key: string | undefined;
  fields: PostFields;
}): PostRequest | undefined {
  const { user, fields } = request;
  const key = readIdempotencyKey(request.key);
  if (key === undefined) return undefined;
  return { user, key, hash: createHash('sha256').update(JSON.stringify(fields)).digest() };
}
