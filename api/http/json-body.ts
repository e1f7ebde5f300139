import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { Failure } from '../../shared/failures.js';
import { TurnQueue } from './turn-queue.js';

/** Limits of a JSON body. */
export interface BodyLimits {
  /** Bytes, after decoding any Content-Encoding. */
  maxBytes: number;
  /** Levels of objects and arrays. */
  maxDepth: number;
  /** Members of all objects and arrays together; an empty one counts as one. */
  maxValues: number;
}

/**
 * Reads a JSON body into `request.body`. Throws `unsupported_media_type` unless it is application/json in UTF-8, or for
 * PATCH application/merge-patch+json (RFC 7396); `payload_too_large`; `invalid_json` when it is malformed (RFC 8259; a
 * byte order mark, too); `invalid_request` when it nests too deeply, has too many values, or contains text that is not
 * well-formed Unicode.
 */
export function jsonBody({ maxBytes, ...treeLimits }: BodyLimits): RequestHandler {
  const largeBodies = new TurnQueue(1);
  const readBytes = express.raw({ type: () => true, limit: maxBytes });
  return (request, response, next) => {
    checkMediaType(request);
    // The reader would wait for the whole body first.
    if (Number(request.headers['content-length']) > maxBytes) throw new Failure('payload_too_large');
    const answer = atMostOnce(next);
    whenLongerThan(maxBytes, request, () => answer(new Failure('payload_too_large')));
    readBytes(request, response, (error?: unknown) => {
      if (error) return answer(toBodyFailure(error));
      const parse = () => parseInto(request, treeLimits, answer);
      // The decoded size counts: a gzip bomb is small on the wire.
      if (request.body instanceof Uint8Array && request.body.length > largeBytes) largeBodies.run(parse);
      else parse();
    });
  };
}

/** A body of this size takes a millisecond to check and parse, so each turn of the event loop handles one. */
const largeBytes = 65_536;

/** The reader itself refuses only at the end of the body, which may never come. */
function whenLongerThan(maxBytes: number, request: Request, refuse: () => void): void {
  let bytes = 0;
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBytes) return;
    request.off('data', count);
    refuse();
  };
  request.on('data', count);
}

function atMostOnce(next: NextFunction): NextFunction {
  let called = false;
  return (error?: unknown) => {
    if (called) return;
    called = true;
    next(error);
  };
}

/** The application's reader (`app.locals.jsonBody`), for generated routes, which know only the request. */
export const readJsonBody = (request: Request, response: Response, next: NextFunction): void => {
  const read = request.app.locals.jsonBody as RequestHandler;
  void read(request, response, next);
};

/** As `readJsonBody`, for bodies of at most 16 KB (`app.locals.shortJsonBody`), of whoever has shown no credentials among others. */
export const readShortJsonBody = (request: Request, response: Response, next: NextFunction): void => {
  const read = request.app.locals.shortJsonBody as RequestHandler;
  void read(request, response, next);
};

/** The errors of the reader, and of its decoders, carry an HTTP status. */
function toBodyFailure(error: unknown): Failure {
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  if (status === 413) return new Failure('payload_too_large');
  if (status === 415) return new Failure('unsupported_media_type');
  return new Failure('invalid_json', { cause: error });
}

const json = /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i;
const mergePatch = /^application\/merge-patch\+json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i;

function checkMediaType({ method, headers: { 'content-type': contentType = '' } }: Request): void {
  if (json.test(contentType) || (method === 'PATCH' && mergePatch.test(contentType))) return;
  throw new Failure('unsupported_media_type', method === 'PATCH' ? { headers: acceptPatch } : {});
}

/** The accepted patch formats, which a refusal should list (RFC 5789, 2.2). */
const acceptPatch = { 'Accept-Patch': 'application/merge-patch+json, application/json' };

type TreeLimits = Pick<BodyLimits, 'maxDepth' | 'maxValues'>;

function parseInto(request: Request, limits: TreeLimits, next: NextFunction): void {
  try {
    // Undefined for a request without a body.
    const bytes = request.body instanceof Uint8Array ? request.body : Buffer.alloc(0);
    checkTree(bytes, limits);
    const value = parse(bytes);
    if (!isWellFormed(value)) throw notWellFormed();
    request.body = value;
    next();
  } catch (error) {
    next(error);
  }
}

function parse(bytes: Uint8Array): unknown {
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

/**
 * Checks the limits before parsing, because the parser takes a third of a second for a megabyte of keys or brackets;
 * this reads each byte once. Malformed JSON may be refused for its size or depth instead.
 */
function checkTree(bytes: Uint8Array, { maxDepth, maxValues }: TreeLimits): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) at = endOfString(bytes, at + 1);
    else if (byte === comma) values++;
    else if (closing.has(byte)) depth--;
    else if (opening.has(byte)) {
      values++;
      if (++depth > maxDepth) throw tooDeep(maxDepth);
    }
    if (values > maxValues) throw tooManyValues(maxValues);
  }
}

/** The index of the closing quote of the string whose content begins at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/** Whether every string and key is well-formed. Only escapes can make a lone surrogate: the decoder refuses all else. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => key.isWellFormed() && isWellFormed(child));
}

const tooDeep = (maxDepth: number): Failure =>
  new Failure('invalid_request', { detail: `The body nests deeper than ${maxDepth} levels.` });

const tooManyValues = (maxValues: number): Failure =>
  new Failure('invalid_request', { detail: `The body has more than ${maxValues} values.` });

const notWellFormed = (): Failure =>
  new Failure('invalid_request', { detail: 'The body has text that is not well-formed Unicode.' });
