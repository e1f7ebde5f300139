import { randomUUID } from 'node:crypto';
import { ValidateError } from '@tsoa/runtime';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import type { Problem, ProblemError, ProviderId } from '../../shared/contracts/contract.js';
import { Failure, type FailureCode, failureKinds } from '../../shared/failures.js';
import { givenFields } from '../../shared/json/json.js';
import type { Log } from '../../shared/runtime/log.js';
import { invalidRequest } from '../../shared/validation.js';

/** How failures look in HTTP: `application/problem+json`, RFC 9457, unless the request's are sent otherwise. */

/** Sends a failure as the answer; the headers that its status requires are set. */
export type SendFailure = (response: Response, failure: Failure) => void;

/** Sets how this request's failures are sent; `undefined`: as problems. */
export function sendFailuresBy(response: Response, send: SendFailure | undefined): void {
  response.locals.sendFailure = send;
}

/** Whether the failures of this request are sent by another function. */
export const areFailuresSentBy = (response: Response): boolean => response.locals.sendFailure !== undefined;

/** Answers every error as a problem; an error that is not a `Failure` becomes `internal` and is logged. */
export function problemHandler(log: Log): ErrorRequestHandler {
  return (error: unknown, _request, response, _next) => {
    const failure = toFailure(error);
    const fields = { err: error, requestId: requestIdOf(response), code: failure.code };
    recordFailure(response, failure);
    if (!(error instanceof Failure) && failure.code === 'internal') log.error(fields, 'unexpected error');
    // An answer that has begun can no longer become a problem: closing it shows the client that it is incomplete.
    if (response.headersSent) response.destroy();
    else sendFailure(response, failure);
  };
}

function sendFailure(response: Response, failure: Failure): void {
  response.set({ ...failure.facts.headers });
  drainRequest(response.req);
  const send: SendFailure = response.locals.sendFailure ?? sendProblem;
  send(response, failure);
}

/** Refuses every other method of an existing address (RFC 9110, 15.5.6); `allow` is the header's value. */
export function methodNotAllowed(allow: string): RequestHandler {
  return () => {
    throw new Failure('method_not_allowed', { headers: { Allow: allow } });
  };
}

export const notFound: RequestHandler = () => {
  throw new Failure('not_found');
};

/** The id of the request; set before anything can fail. */
export const requestIdOf = (response: Response): string => String(response.getHeader('X-Request-Id'));

/** Milliseconds since the request's headers were read; `startedAt` is set together with its id. */
export const elapsedMsOf = (response: Response): number => performance.now() - response.locals.startedAt;

/** Records which provider a request names that does so in its body, for the metrics. */
export function recordProvider(response: Response, provider: ProviderId): void {
  response.locals.onProvider?.(provider);
}

/** Calls back when the body of the request names a provider; undefined means no longer. */
export function onProvider(response: Response, callback: ((provider: ProviderId) => void) | undefined): void {
  response.locals.onProvider = callback;
}

/** Records what the request failed with, for the log and the metrics. */
export function recordFailure(response: Response, { code }: Failure): void {
  response.locals.failureCode = code;
}

/** The code of the problem that answered the request, if there was one. */
export const failureCodeOf = (response: Response): FailureCode | undefined => response.locals.failureCode;

/** The end of the request: the code of its failure, `ok`, or `client_closed` when the answer was not written. */
export const endOf = (response: Response): FailureCode | 'ok' | 'client_closed' =>
  response.writableFinished ? (failureCodeOf(response) ?? 'ok') : 'client_closed';

/** The problem object of a failure; `requestId` is the id of the request that failed. */
export function toProblem(failure: Failure, requestId: string): Problem {
  const { title, detail } = failureKinds[failure.code];
  const { status } = failure;
  const { errors, provider } = failure.facts;
  return {
    type: `urn:quillgate:problem:${failure.code}`,
    title,
    status,
    detail: failure.facts.detail ?? detail,
    code: failure.code,
    requestId,
    ...givenFields({ errors, provider, retryable: status === 500 ? failure.retryable : undefined }),
  };
}

/** Sets `Retry-After` where waiting helps. */
export function setRetryAfter(response: Response, { code, facts }: Failure): void {
  const { retryAfterMs = failureKinds[code].retryAfterMs } = facts;
  if (retryAfterMs !== undefined) response.set('Retry-After', String(Math.ceil(retryAfterMs / 1000)));
}

function sendProblem(response: Response, failure: Failure): void {
  setRetryAfter(response, failure);
  response.status(failure.status);
  response.type('application/problem+json').send(JSON.stringify(toProblem(failure, requestIdOf(response))));
}

function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof ValidateError) return fromValidation(error);
  if (error instanceof URIError) return new Failure('not_found');
  return new Failure('internal', { cause: error });
}

/** tsoa's messages can repeat what the caller sent, so they are translated, never passed on. */
function fromValidation({ fields }: ValidateError): Failure {
  if ('X-LLM' in fields) return new Failure('unknown_provider');
  const errors = Object.entries(fields).map(
    ([path, { message }]): ProblemError => ({ pointer: toPointer(path), detail: translate(message) }),
  );
  return invalidRequest(errors);
}

/** `messages.$0.role` → `/messages/0/role`; the body itself → the empty pointer; a header → its name. */
function toPointer(path: string): string {
  if (/^x-/i.test(path)) return path;
  const steps = path.split('.').filter((step) => step !== 'body' && step !== 'requestBody');
  return steps.map((step) => `/${step.replace(/^\$/, '')}`).join('');
}

const translations = new Map([
  ['invalid string value', 'must be a string'],
  ['invalid object', 'must be an object'],
  ['invalid array', 'must be an array'],
]);

function translate(message: string): string {
  const [, values] = /^should be one of the following; \[(.*)\]$/.exec(message) ?? [];
  if (values !== undefined) return `must be one of: ${values.replaceAll("'", '').replaceAll(',', ', ')}`;
  return (
    translations.get(message) ??
    (message.endsWith(' is required') ? 'is required' : 'has a value that is not allowed')
  );
}

/** The answer to bytes that Node could not parse as a request, such as headers over its limit. */
export function problemForRawSocket({ code }: { code?: string | undefined }): string {
  const { status, reason } = rawStatuses.get(code ?? '') ?? { status: 400, reason: 'Bad Request' };
  const requestId = randomUUID();
  const detail = 'The server could not read this as an HTTP request.';
  const body = JSON.stringify(toProblem(new Failure('invalid_request', { detail, status }), requestId));
  return [
    `HTTP/1.1 ${status} ${reason}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}

const rawStatuses = new Map([
  ['HPE_HEADER_OVERFLOW', { status: 431, reason: 'Request Header Fields Too Large' }],
  ['ERR_HTTP_REQUEST_TIMEOUT', { status: 408, reason: 'Request Timeout' }],
]);

const maxPauseMs = 2000;
const maxMs = 10_000;
const maxBytes = 16_777_216;

/** Reads and discards the rest of a body: closing the connection while the client still sends would lose the answer. */
export function drainRequest(request: Request): void {
  if (request.complete) return;
  const cutOff = () => request.socket.destroy();
  const pause = setTimeout(cutOff, maxPauseMs).unref();
  const end = setTimeout(cutOff, maxMs).unref();
  const stop = () => {
    clearTimeout(pause);
    clearTimeout(end);
  };
  let bytes = 0;
  request
    .on('data', (chunk: Buffer) => {
      pause.refresh();
      bytes += chunk.length;
      if (bytes > maxBytes) cutOff();
    })
    .once('end', stop)
    .once('close', stop)
    .resume();
}
