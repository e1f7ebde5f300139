import { createHash } from 'node:crypto';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { methodNotAllowed } from './problem.js';

type Headers = Readonly<Record<string, string>>;

interface Document {
  readonly validators: { readonly ETag: string; readonly 'Last-Modified'?: string };
  /** Sent with or without a body: who may keep a copy, for instance. */
  readonly headers: Headers;
  /** Called only for a client without a current copy. */
  readonly content: () => Content | Promise<Content>;
}

/** A document for a client without a current copy. */
export interface Content {
  readonly body: string | Buffer | undefined;
  readonly headers?: Headers;
  /** Whether the next request gets another body: this one has no validators, and must not be stored. */
  readonly isProvisional?: boolean;
}

/** Answers a read with the document, or with 304 when the client's copy is current (RFC 9110, 13.1.2). */
export async function sendDocument(
  request: Request,
  { validators, headers, content }: Document,
): Promise<void> {
  const response = request.res as Response;
  const isCurrent = isNotModified(request.get('If-None-Match'), validators.ETag);
  // Before any header is set: if it fails, the problem must not carry them.
  const { body, headers: ofBody, isProvisional } = isCurrent ? unchanged : await content();
  response.set({ ...headers, ...ofBody, ...(isProvisional ? noStore : validators) });
  if (isCurrent) response.status(304).end();
  else response.send(body);
}

const unchanged: Content = { body: undefined };
const noStore = { 'Cache-Control': 'no-store' };

/** A strong entity tag (RFC 9110, 8.8.3) of bytes, or of a text in UTF-8. */
export const digestTag = (content: string | Buffer): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;

export interface TaggedBytes {
  readonly body: Buffer;
  readonly etag: string;
}

export const taggedBytes = (body: Buffer): TaggedBytes => ({ body, etag: digestTag(body) });

/** Answers with the bytes, or with 304 when the client has them. */
export const sendBytes = (request: Request, { body, etag }: TaggedBytes, headers: Headers): Promise<void> =>
  sendDocument(request, { validators: { ETag: etag }, headers, content: () => ({ body }) });

/** As `sendBytes`, for bytes that never change. */
export function sendFile(bytes: Buffer, headers: Headers): RequestHandler {
  const tagged = taggedBytes(bytes);
  return (request) => sendBytes(request, tagged, headers);
}

/** Serves documents at these exact paths, each by its handler for `GET`; refuses other methods. */
export function documentsRouter(documents: Readonly<Record<string, RequestHandler>>): Router {
  const router = Router({ caseSensitive: true, strict: true });
  for (const [path, handler] of Object.entries(documents))
    router.route(path).get(handler).all(methodNotAllowed('GET, HEAD'));
  return router;
}

/** Whether `If-None-Match` has this tag, by weak comparison (RFC 9110, 13.1.2), or as a proxy has changed it. */
export function isNotModified(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = parseTags(ifNoneMatch);
  return tags === '*' || (tags?.some((tag) => tagAsSent(tag) === tagAsSent(etag)) ?? false);
}

/**
 * The tag as this server may have sent it. A proxy that compresses makes it weak, as nginx does, or adds the coding
 * (`AddSuffix` of Apache's `DeflateAlterETag` and `BrotliAlterETag`), and gives the client's requests on unchanged.
 */
export const tagAsSent = (tag: string): string =>
  tag.replace(/^W\//, '').replace(/-(?:gzip|br|zstd|deflate)"$/, '"');

/**
 * One element of a list of tags, with the comma after it; elements may be empty. The two runs of blanks always have a
 * tag between them: adjacent runs would make the matching time quadratic.
 */
const element = /[ \t]*(?:((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(,|$)/y;

/** The tags of `If-Match` or `If-None-Match`; undefined unless the header is a star or a list of tags. */
export function parseTags(header: string): string[] | '*' | undefined {
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
