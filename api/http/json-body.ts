import { MIMEType } from 'node:util';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { z } from 'zod';
import { Failure } from '../../shared/failures.js';
import { parseBody } from '../../shared/validation.js';
import { readBody } from './read-body.js';
import { TurnQueue } from './turn-queue.js';

type BodyReader = (request: Request, response: Response, next: NextFunction) => Promise<void>;

/** The bytes of one request, which count from the first of them. */
export interface HeldBytes {
  /**
   * Counts so many bytes from now on. Where they are more than before, throws `rate_limited` when the user holds too
   * many, and `overloaded` when all users do; throws after release.
   */
  resize(bytes: number): void;
  /** Counts them no longer; further calls do nothing. */
  release(): void;
  /** Aborts with a `Failure` if the body is refused while it arrives. */
  readonly refusal?: AbortSignal;
}

/** Limits of a JSON body. */
export interface BodyLimits {
  /** Bytes, after decoding any Content-Encoding. */
  maxBytes: number;
  /** Levels of objects and arrays. */
  maxDepth: number;
  /** Members of all objects and arrays together; an empty one counts as one. */
  maxValues: number;
  /** Counts the bytes of a body as they arrive; absent means that nothing counts them. */
  holdBytes?: (request: Request) => HeldBytes;
  /** Whether any Content-Encoding is refused. */
  isPlain?: boolean;
}

/**
 * Reads a JSON body into `request.body`. Its bytes count as held until the response has ended. Throws
 * `unsupported_media_type` unless it is application/json in UTF-8, or for PATCH application/merge-patch+json (RFC
 * 7396); `payload_too_large`; what `holdBytes` throws; `invalid_json` when it is malformed (RFC 8259; a byte order
 * mark, too); `invalid_request` when it nests too deeply, has too many values, or contains text that is not well-formed
 * Unicode.
 */
export function jsonBody({ maxBytes, holdBytes, isPlain, ...treeLimits }: BodyLimits): BodyReader {
  const largeBodies = new TurnQueue(1);
  return async (request, response, next) => {
    checkMediaType(request);
    if (isPlain && 'content-encoding' in request.headers)
      throw new Failure('unsupported_media_type', plainAlone);
    if (Number(request.headers['content-length']) > maxBytes) throw new Failure('payload_too_large');
    // If the client has left meanwhile, the response has closed before.
    if (response.destroyed) throw new Failure('invalid_json');
    const held = holdBytes?.(request);
    if (held) response.once('close', held.release);
    const hold = (bytes: number) => held?.resize(bytes);
    const bytes = await readBody(request, { maxBytes, hold, refusal: held?.refusal });
    // The decoded size counts: a gzip bomb is small on the wire.
    if (bytes.length > largeBytes) await new Promise<void>((resolve) => largeBodies.run(resolve));
    Object.assign(response.locals, { bodyBytes: bytes.length, heldBytes: held });
    request.body = parse(bytes, treeLimits);
    next();
  };
}

const plainAlone = { headers: { 'Accept-Encoding': 'identity' } };

/** The bytes of a body that was read, after decoding any Content-Encoding. */
export const bodyBytesOf = (response: Response): number => response.locals.bodyBytes;

/** Counts the request with at least so many bytes, which it gives, until it ends. Throws as `HeldBytes.resize`. */
export function holdAtLeast(response: Response, bytes: number): number {
  const held: HeldBytes | undefined = response.locals.heldBytes;
  // A stored chat goes on although its client has left, whose bytes count no longer.
  if (bytes > bodyBytesOf(response) && !response.destroyed) held?.resize(bytes);
  return bytes;
}

/** A body of this size takes a millisecond to check and parse, so each turn of the event loop handles one. */
const largeBytes = 65_536;

/** The application's reader of chats (`app.locals.jsonBody`), for generated routes, which know only the request. */
export const readChatBody: BodyReader = (request, response, next) =>
  (request.app.locals.jsonBody as BodyReader)(request, response, next);

/** As `readChatBody`, for `/v1` (`app.locals.completionJsonBody`). */
export const readCompletionBody: BodyReader = (request, response, next) =>
  (request.app.locals.completionJsonBody as BodyReader)(request, response, next);

/** As `readChatBody`, for other operations: an overloaded server answers them with 503 instead of 500. */
export const readJsonBody: BodyReader = (request, response, next) =>
  readChatBody(request, response, next).catch(asServiceUnavailable);

/** As `readJsonBody`, for bodies that come without credentials (`app.locals.shortJsonBody`). */
export const readShortJsonBody: BodyReader = (request, response, next) =>
  (request.app.locals.shortJsonBody as BodyReader)(request, response, next).catch(asServiceUnavailable);

/** Checks a body before the generated check, which has no limits. The schema's result replaces the body. */
export const checkBody =
  (schema: z.ZodType): RequestHandler =>
  (request, _response, next) => {
    request.body = parseBody(schema, request.body);
    next();
  };

function asServiceUnavailable(error: unknown): never {
  if (error instanceof Failure && error.code === 'overloaded')
    throw new Failure('overloaded', { ...error.facts, status: 503 });
  throw error;
}

/**
 * Of the parameters only `charset` counts. Clients send others (`odata.metadata=minimal`, `version=1`) and empty ones,
 * which say nothing of how the bytes are to be read (RFC 9110, 5.6.6; RFC 8259, 11).
 */
function checkMediaType({ method, headers: { 'content-type': contentType = '' } }: Request): void {
  const type = mediaTypeOf(contentType);
  const isJson = type?.essence === 'application/json';
  const isPatch = method === 'PATCH' && type?.essence === 'application/merge-patch+json';
  if ((isJson || isPatch) && /^utf-?8$/i.test(type.params.get('charset') ?? 'utf-8')) return;
  throw new Failure('unsupported_media_type', method === 'PATCH' ? { headers: acceptPatch } : {});
}

function mediaTypeOf(contentType: string): MIMEType | undefined {
  try {
    return new MIMEType(contentType);
  } catch {
    return undefined;
  }
}

/** The accepted patch formats, which a refusal should list (RFC 5789, 2.2). */
const acceptPatch = { 'Accept-Patch': 'application/merge-patch+json, application/json' };

type TreeLimits = Pick<BodyLimits, 'maxDepth' | 'maxValues'>;

function parse(bytes: Uint8Array, limits: TreeLimits): unknown {
  const { excess } = measureTree(bytes, limits);
  if (excess) throw invalid(`The body ${excess}.`);
  const value = parseJson(bytes);
  if (!isWellFormed(value)) throw invalid('The body has text that is not well-formed Unicode.');
  return value;
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    // The parser's message quotes the body.
    throw new Failure('invalid_json');
  }
}

const [quote, backslash, comma] = Buffer.from('"\\,');
const opening = new Set(Buffer.from('[{'));
const closing = new Set(Buffer.from(']}'));
/** How much deeper each byte leads. A set of bytes takes three times as long. */
const levels = Int8Array.from(
  { length: 256 },
  (_, byte) => Number(opening.has(byte)) - Number(closing.has(byte)),
);

/**
 * Counts the values of JSON text, and says which limit it exceeds. To be called before parsing, because the parser
 * takes a third of a second for a megabyte of keys or brackets; this reads each byte once. Malformed JSON may be
 * refused for its size or depth instead.
 */
export function measureTree(
  bytes: Uint8Array,
  { maxDepth, maxValues }: TreeLimits,
): { values: number; excess?: string } {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) at = endOfString(bytes, at + 1);
    const level = levels[byte] as number;
    depth += level;
    if (level > 0 || byte === comma) values++;
    if (depth > maxDepth) return { values, excess: `nests deeper than ${maxDepth} levels` };
    if (values > maxValues) return { values, excess: `has more than ${maxValues} values` };
  }
  return { values };
}

/** The index of the closing quote of the string whose content begins at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/** Whether every string and key is well-formed. Only escapes can give a lone surrogate: the decoder refuses others. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => key.isWellFormed() && isWellFormed(child));
}

const invalid = (detail: string): Failure => new Failure('invalid_request', { detail });
