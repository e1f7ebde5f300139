import { createHash } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { UserIdentity } from '../../db/access/users.js';
import type { PostFields, PostRequest } from '../../db/posts/post-creation.js';
import { postInput, type postPatch } from '../../db/posts/post-rules.js';
import type { ProblemError } from '../../shared/contracts/contract.js';
import { check, invalidRequest, maxErrorsListed } from '../../shared/validation.js';
import { markApplied, prefersStrict } from '../http/prefer.js';
import { listFields, readIdempotencyKey, type UnknownField, unknownFieldsOf } from '../http/query.js';

/**
 * Checks the parsed JSON body and leaves only the fields of a post in `request.body`. Others are listed in
 * `X-Ignored-Fields`, or refused with `Prefer: handling=strict` (RFC 7240). Throws `invalid_request`.
 */
export function checkPost(schema: typeof postInput | typeof postPatch): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const { data, errors } = check(schema, request.body);
    const ignored = unknownFields(request.body);
    const isStrict = prefersStrict(request.get('Prefer'));
    markApplied(response, { isStrict });
    if (isStrict) errors.push(...ignored.slice(0, maxErrorsListed).map(refuse));
    if (errors.length > 0) throw invalidRequest(errors);
    if (ignored.length > 0) response.set('X-Ignored-Fields', listFields(ignored.map(({ name }) => name)));
    request.body = data;
    next();
  };
}

const writable = new Set(Object.keys(postInput.shape));
const readOnly = new Set(['id', 'publishedAt', 'createdAt', 'updatedAt', 'version']);

const unknownFields = (body: unknown): UnknownField[] =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? unknownFieldsOf(body, writable) : [];

const refuse = ({ name, pointer }: UnknownField): ProblemError => ({
  pointer,
  detail: readOnly.has(name) ? 'is read-only' : 'is not a field of a post',
});

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
