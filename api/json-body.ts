import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { Failure } from '../shared/failures.js';

/** Limits of a JSON body. */
export interface BodyLimits {
  /** Bytes, after any Content-Encoding is undone. */
  maxBytes: number;
  /** Levels of objects and arrays. */
  maxDepth: number;
}

/**
 * Reads a JSON body into `request.body`, or throws: `unsupported_media_type` unless it is sent in UTF-8 as
 * application/json, with PATCH also as application/merge-patch+json (RFC 7396), `payload_too_large`, `invalid_json`
 * when it is malformed (RFC 8259, a byte order mark included), `invalid_request` when it nests too deeply or has text
 * that is not well-formed Unicode.
 */
export function jsonBody({ maxBytes, maxDepth }: BodyLimits): RequestHandler {
  const readBytes = express.raw({ type: () => true, limit: maxBytes });
  return (request, response, next) => {
    checkMediaType(request);
    // The reader would first wait for all of it.
    if (Number(request.headers['content-length']) > maxBytes) throw new Failure('payload_too_large');
    const answer = atMostOnce(next);
    whenLongerThan(maxBytes, request, () => answer(new Failure('payload_too_large')));
    readBytes(request, response, (error?: unknown) => {
      if (error) return answer(toFailure(error));
      parseInto(request, maxDepth, answer);
    });
  };
}

/** The reader's own refusal comes only with the end of the body, which may never come. */
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

/** The application's own reader, for routes that only know the request; see `app.locals.jsonBody`. */
export const readJsonBody = (request: Request, response: Response, next: NextFunction): void => {
  const read = request.app.locals.jsonBody as RequestHandler;
  void read(request, response, next);
};

/** The reader's errors, and those of whatever undoes a Content-Encoding for it, carry the HTTP status they stand for. */
function toFailure(error: unknown): Failure {
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

/** Which kinds of patch there are, as RFC 5789 (2.2) wants a refusal to tell. */
const acceptPatch = { 'Accept-Patch': 'application/merge-patch+json, application/json' };

function parseInto(request: Request, maxDepth: number, next: NextFunction): void {
  try {
    const value = parse(request.body);
    checkTree(value, maxDepth);
    request.body = value;
    next();
  } catch (error) {
    next(error);
  }
}

function parse(bytes: unknown): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes as Uint8Array);
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the body.
    throw new Failure('invalid_json');
  }
}

/** Without recursion: the parser survives nesting that would overflow the stack of whoever walks the result. */
function checkTree(root: unknown, maxDepth: number): void {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string' && !value.isWellFormed()) throw notWellFormed();
    if (typeof value !== 'object' || value === null) continue;
    if (depth >= maxDepth) throw tooDeep(maxDepth);
    for (const [key, child] of Object.entries(value)) {
      if (!key.isWellFormed()) throw notWellFormed();
      open.push({ value: child, depth: depth + 1 });
    }
  }
}

const tooDeep = (maxDepth: number): Failure =>
  new Failure('invalid_request', { detail: `The body nests deeper than ${maxDepth} levels.` });

const notWellFormed = (): Failure =>
  new Failure('invalid_request', { detail: 'The body has text that is not well-formed Unicode.' });
