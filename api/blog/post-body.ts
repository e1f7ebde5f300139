import { createHash } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { UserIdentity } from '../../db/access/users.js';
import type { PostChanges } from '../../db/posts/post-changes.js';
import type { PostFields, PostRequest } from '../../db/posts/post-creation.js';
import type { ProblemError } from '../../shared/contract.js';
import { readIdempotencyKey } from '../http/idempotency-key.js';
import { listFields, type UnknownField, unknownFieldsOf } from '../http/ignored-fields.js';
import { markApplied, prefersStrict } from '../http/prefer.js';
import { invalidRequest, maxErrorsListed, text } from '../http/validation.js';

const maxTags = 20;
const tag = text({ max: 50, blank: false });
const tags = z
  .array(z.unknown(), { error: 'must be an array' })
  // Checked before the tags themselves, so that a million of them are one error.
  .max(maxTags, { error: `must have at most ${maxTags} items` })
  .pipe(z.array(tag))
  .transform((given) => [...new Set(given)])
  .meta({ items: z.toJSONSchema(tag, { target: 'openapi-3.0' }), maxItems: maxTags });

const slug = z
  .string({ error: 'must be a string' })
  .max(100, { error: 'must be at most 100 characters' })
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, { error: 'must be lowercase letters, digits and single hyphens' });

/** Checks the body of a whole post. Absent fields stay absent, and null stays null. */
export const postInput = z.object(
  {
    content: text({ max: 262_144, blank: false }),
    title: text({ max: 300 }).nullish(),
    author: text({ max: 200, blank: false }).nullish(),
    tags: tags.nullish(),
    slug: slug.nullish(),
    status: z.enum(['published', 'draft'], { error: 'must be published or draft' }).nullish(),
  },
  { error: 'must be an object' },
);

/** Checks a merge patch (RFC 7396) of a post. */
export const postPatch = postInput.partial({ content: true });

/** The post that a body describes, with all defaults; `author` is the author when the body names none. */
export function toPostFields(input: z.output<typeof postInput>, author: string): PostFields {
  return {
    content: input.content,
    title: input.title ?? null,
    author: input.author ?? author,
    tags: input.tags ?? [],
    slug: input.slug ?? undefined,
    status: input.status ?? 'published',
  };
}

/** The changes that a merge patch describes: null resets a field to its default. */
export function toPostChanges(patch: z.output<typeof postPatch>, author: string): PostChanges {
  return {
    ...(patch.content !== undefined && { content: patch.content }),
    ...(patch.title !== undefined && { title: patch.title }),
    ...(patch.author !== undefined && { author: patch.author ?? author }),
    ...(patch.tags !== undefined && { tags: patch.tags ?? [] }),
    ...(patch.slug !== undefined && { slug: patch.slug }),
    ...(patch.status !== undefined && { status: patch.status ?? 'published' }),
  };
}

/**
 * Checks the parsed JSON body and leaves only the fields of a post in `request.body`. Others are listed in
 * `X-Ignored-Fields`, or refused with `Prefer: handling=strict` (RFC 7240). Throws `invalid_request`.
 */
export function checkPost(schema: typeof postInput | typeof postPatch): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const parsed = schema.safeParse(request.body);
    const ignored = unknownFields(request.body);
    const isStrict = prefersStrict(request.get('Prefer'));
    markApplied(response, { isStrict });
    const errors = [
      ...(parsed.error?.issues ?? []).map(toError),
      ...(isStrict ? ignored.slice(0, maxErrorsListed).map(refuse) : []),
    ];
    if (errors.length > 0) throw invalidRequest(errors);
    if (ignored.length > 0) response.set('X-Ignored-Fields', listFields(ignored.map(({ name }) => name)));
    request.body = parsed.data;
    next();
  };
}

const toError = ({ path, message }: z.core.$ZodIssue): ProblemError => ({
  pointer: path.map((step) => `/${String(step)}`).join(''),
  detail: message,
});

const writable = new Set(Object.keys(postInput.shape));
const readOnly = new Set(['id', 'publishedAt', 'createdAt', 'updatedAt', 'version']);

const unknownFields = (body: unknown): UnknownField[] =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? unknownFieldsOf(body, writable) : [];

const refuse = ({ name, pointer }: UnknownField): ProblemError => ({
  pointer,
  detail: readOnly.has(name) ? 'is read-only' : 'is not a field of a post',
});

/**
 * What identifies a retry of a request to create a post; undefined when it has no key. Requests are the same when they
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
