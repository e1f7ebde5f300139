import { MIMEType } from 'node:util';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { z } from 'zod';
import type { ProblemError } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import {
  type ChatBytes,
  type ChatTexts,
  type ChatValues,
  queuedBytesOf,
  type ReadJson,
  readJson,
  type TreeLimits,
  writeChat,
} from '../../shared/json/json-worker.js';
import { check, invalidRequest, maxErrorsListed, parseBody } from '../../shared/validation.js';
import { LargeWork } from './large-work.js';
import { markApplied, prefersStrict } from './prefer.js';
import { listFields } from './query.js';
import { readBody, tooLarge } from './read-body.js';
import { TurnQueue } from './server.js';

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
  /** Id of the user; absent means a stranger. */
  readonly user?: string;
}

/** Limits of a JSON body. */
export interface BodyLimits extends TreeLimits {
  /** Bytes, after decoding any Content-Encoding. */
  maxBytes: number;
  /** Counts the bytes of a body as they arrive; absent means that nothing counts them. */
  holdBytes?: (request: Request) => HeldBytes;
  /** Whether any Content-Encoding is refused. */
  isPlain?: boolean;
  /** Where encoded and large bodies wait for their turn. */
  largeWork?: LargeWork;
}

/** How a body was read, for what follows. */
interface BodyFacts {
  /** Its bytes, after decoding any Content-Encoding. */
  readonly bytes: number;
  readonly held: HeldBytes | undefined;
  readonly largeWork: LargeWork;
}

/**
 * Reads a JSON body into `request.body`. Its bytes count as held until the response has ended. Throws
 * `unsupported_media_type` unless it is application/json in UTF-8, or for PATCH application/merge-patch+json (RFC
 * 7396); `payload_too_large`; what `holdBytes` throws; `invalid_json` when it is malformed (RFC 8259; a byte order
 * mark, too); `invalid_request` when it nests too deeply, has too many values, or contains text that is not well-formed
 * Unicode.
 */
export function jsonBody({
  maxBytes,
  holdBytes,
  isPlain,
  largeWork = new LargeWork(),
  ...limits
}: BodyLimits): BodyReader {
  const turns = new TurnQueue(1);
  return async (request, response, next) => {
    checkMediaType(request);
    if (isPlain && 'content-encoding' in request.headers)
      throw new Failure('unsupported_media_type', plainAlone);
    if (Number(request.headers['content-length']) > maxBytes) throw tooLarge(maxBytes);
    // If the client has left meanwhile, the response has closed before.
    if (response.destroyed) throw new Failure('invalid_json');
    const held = holdBytes?.(request);
    if (held) response.once('close', held.release);
    const hold = (bytes: number) => held?.resize(bytes);
    const { sent, decode } = await readBody(request, { maxBytes, hold, refusal: held?.refusal });
    const read = async () => {
      const bytes = decode ? await decode() : sent;
      const facts: BodyFacts = { bytes: bytes.length, held, largeWork };
      response.locals.body = facts;
      if (bytes.length > threadBytes) return largeWork.thread.read(ofItsOwn(bytes), limits);
      if (bytes.length > turnBytes) await new Promise<void>((resolve) => turns.run(resolve));
      return readJson(bytes, limits);
    };
    const isLarge = decode !== undefined || sent.length > threadBytes;
    request.body = toValue(
      await (isLarge ? largeWork.run(held?.user ?? '', read, leftOf(response)) : read()),
    );
    next();
  };
}

const plainAlone = { headers: { 'Accept-Encoding': 'identity' } };

/** Aborts when the client leaves. */
function leftOf(response: Response): AbortSignal {
  const left = new AbortController();
  const abort = () => left.abort(new Failure('invalid_json'));
  if (response.destroyed) abort();
  else response.once('close', abort);
  return left.signal;
}

/** A body that came in one piece may lie in memory that it shares, which cannot go over to a thread. */
const ofItsOwn = (bytes: Buffer): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength > threadBytes
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
    : new Uint8Array(bytes);

/**
 * Writes the texts of a chat whose body was read, and gives their length on the queue, as which the request counts at
 * least until it ends. Those of a large body are written in its thread. Throws as `HeldBytes.resize` and `LargeWork`.
 */
export async function writeTexts(
  response: Response,
  chat: ChatValues,
): Promise<{ texts: ChatTexts | ChatBytes; bytes: number }> {
  const { bytes: bodyBytes, held, largeWork }: BodyFacts = response.locals.body;
  const write = () => largeWork.thread.write(chat);
  const texts = bodyBytes > threadBytes ? await largeWork.run(held?.user ?? '', write) : writeChat(chat);
  const bytes = queuedBytesOf(texts);
  // A stored chat goes on although its client has left, whose bytes count no longer.
  if (bytes > bodyBytes && !response.destroyed) held?.resize(bytes);
  return { texts, bytes };
}

/** A body of this size takes a millisecond to check and parse, so each turn of the event loop handles one. */
const turnBytes = 65_536;
/** A larger body is read in a thread, and so are its texts written. */
const threadBytes = 1_048_576;

/** The application's reader of chats (`app.locals.jsonBody`), for generated routes, which know only the request. */
export const readChatBody: BodyReader = (request, response, next) =>
  (request.app.locals.jsonBody as BodyReader)(request, response, next);

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

/**
 * As `checkBody`, for a schema that leaves out fields. Those that nothing reads are listed in `X-Ignored-Fields`, or
 * refused with `Prefer: handling=strict` (RFC 7240). Throws `invalid_request`.
 */
export const checkFields =
  (
    schema: z.ZodType,
    unknownFields: (body: unknown) => readonly (ProblemError & { name: string })[],
  ): RequestHandler =>
  (request, response, next) => {
    const { data, errors } = check(schema, request.body);
    const ignored = unknownFields(request.body);
    const isStrict = prefersStrict(request.get('Prefer'));
    markApplied(response, { isStrict });
    if (isStrict)
      errors.push(...ignored.slice(0, maxErrorsListed).map(({ pointer, detail }) => ({ pointer, detail })));
    if (errors.length > 0) throw invalidRequest(errors);
    if (ignored.length > 0) response.set('X-Ignored-Fields', listFields(ignored.map(({ name }) => name)));
    request.body = data;
    next();
  };

function asServiceUnavailable(error: unknown): never {
  if (error instanceof Failure && error.code === 'overloaded')
    throw new Failure('overloaded', { ...error.facts, status: 503 });
  throw error;
}

/**
 * Throws for anything but JSON. The only parameter that counts is `charset`: clients send others (`version=1`,
 * `odata.metadata=minimal`) and empty ones, which do not change how the bytes are read (RFC 9110, 5.6.6; RFC 8259, 11).
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

function toValue(read: ReadJson): unknown {
  if ('malformed' in read) throw new Failure('invalid_json');
  if ('excess' in read) throw new Failure('invalid_request', { detail: `The body ${read.excess}.` });
  return read.value;
}
