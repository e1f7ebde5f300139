import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { Failure } from '../../shared/failures.js';
import { TurnQueue } from './turn-queue.js';

/** Limits of a JSON body. */
export interface BodyLimits {
  /** Bytes, after any Content-Encoding is undone. */
  maxBytes: number;
  /** Levels of objects and arrays. */
  maxDepth: number;
  /** Members of all objects and arrays together; what is empty counts as one. */
  maxValues: number;
}

/**
 * Reads a JSON body into `request.body`, or throws: `unsupported_media_type` unless it is sent in UTF-8 as
 * application/json, with PATCH also as application/merge-patch+json (RFC 7396), `payload_too_large`, `invalid_json`
 * when it is malformed (RFC 8259, a byte order mark included), `invalid_request` when it nests too deeply, has too many
 * values, or has text that is not well-formed Unicode.
 */
export function jsonBody({ maxBytes, ...treeLimits }: BodyLimits): RequestHandler {
  const largeBodies = new TurnQueue(1);
  const readBytes = express.raw({ type: () => true, limit: maxBytes });
  return (request, response, next) => {
    checkMediaType(request);
    // The reader would first wait for all of it.
    if (Number(request.headers['content-length']) > maxBytes) throw new Failure('payload_too_large');
    const answer = atMostOnce(next);
    whenLongerThan(maxBytes, request, () => answer(new Failure('payload_too_large')));
    readBytes(request, response, (error?: unknown) => {
      if (error) return answer(toFailure(error));
      const parse = () => parseInto(request, treeLimits, answer);
      // What a gzip bomb becomes counts, not what was sent.
      if (request.body instanceof Uint8Array && request.body.length > largeBytes) largeBodies.run(parse);
      else parse();
    });
  };
}

/** A body of this size takes a millisecond to check, parse and pass on: one in each turn of the event loop. */
const largeBytes = 65_536;

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

type TreeLimits = Pick<BodyLimits, 'maxDepth' | 'maxValues'>;

function parseInto(request: Request, limits: TreeLimits, next: NextFunction): void {
  try {
    // A request without a body has nothing there.
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
 * Before the parser, which takes a third of a second for a megabyte of keys or of brackets: what is refused here costs a look at
 * each byte. A body that is no JSON may be refused for what it would have been. What is empty counts as one value.
 */
function checkTree(bytes: Uint8Array, { maxDepth, maxValues }: TreeLimits): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) at = endOfText(bytes, at + 1);
    else if (byte === comma) values++;
    else if (closing.has(byte)) depth--;
    else if (opening.has(byte)) {
      values++;
      if (++depth > maxDepth) throw tooDeep(maxDepth);
    }
    if (values > maxValues) throw tooManyValues(maxValues);
  }
}

/** Where the text ends that begins here. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/** Whether every text and key is. Escapes alone can make a lone surrogate: the decoder has seen to the rest. */
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
