import type { Problem, ProblemCode } from '../shared/contracts/contract.ts';
import { endSession } from './session/session.ts';

/** Why a call has no result: the server's problem, or `unreachable` when there was no answer. */
export class ApiError extends Error {
  readonly code: ProblemCode | 'unreachable';
  /** Absent when the server did not answer. */
  readonly problem: Problem | undefined;

  constructor(problem: Problem | undefined, options?: ErrorOptions) {
    super(problem ? problem.detail : 'The server does not answer.', options);
    this.code = problem?.code ?? 'unreachable';
    this.problem = problem;
  }
}

export interface CallOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  json?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Longer than the server takes for anything but a chat, in milliseconds. */
const answerMs = 10_000;

/**
 * Calls the API and parses its JSON; `body` is undefined where there is none. Throws `ApiError`, `unreachable` also
 * when the answer is not there in time; a 401 ends the session here, and the page asks to sign in.
 */
export async function call<T>(path: string, options: CallOptions = {}) {
  const { signal: given } = options;
  const limit = AbortSignal.timeout(answerMs);
  const signal = given ? AbortSignal.any([given, limit]) : limit;
  try {
    const response = await open(path, { ...options, signal });
    const text = await response.text();
    return { body: text === '' ? (undefined as T) : (JSON.parse(text) as T), headers: response.headers };
  } catch (cause) {
    given?.throwIfAborted();
    throw cause instanceof ApiError ? cause : new ApiError(undefined, { cause });
  }
}

/** Like `call`, but the caller reads the body: for streams. Throws an `AbortError` when `signal` aborts. */
export async function open(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = 'GET', json, headers, signal } = options;
  const response = await fetch(path, {
    method,
    headers: { ...(json !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    body: json === undefined ? null : JSON.stringify(json),
    signal: signal ?? null,
    cache: 'no-store',
  }).catch((cause: unknown) => {
    signal?.throwIfAborted();
    throw new ApiError(undefined, { cause });
  });
  if (response.ok) return response;
  if (response.status === 401) endSession();
  throw new ApiError(await readProblem(response));
}

/** The answer of a proxy in front is no problem document. */
async function readProblem(response: Response): Promise<Problem> {
  try {
    const problem = (await response.json()) as Problem;
    if (typeof problem.detail === 'string') return problem;
  } catch {
    // Below.
  }
  const { status } = response;
  return {
    type: 'about:blank',
    title: response.statusText,
    status,
    detail: `The answer was ${status} ${response.statusText}.`.replace(' .', '.'),
    code: 'internal',
    requestId: response.headers.get('X-Request-Id') ?? '',
  };
}
