import { Failure, type FailureCode } from '../../shared/failures.js';
import type { Usage } from '../../shared/protocol/attempts.js';
import { type Refusal, readRefusal } from './refusals.js';

/** The facts of an SDK's error, read by the adapter that knows the SDK. */
export interface ErrorFacts {
  status?: number | undefined;
  /** Machine-readable words for what went wrong: exception names, error codes, error types. */
  words?: readonly unknown[];
  /** The provider's name of the parameter that it refuses. */
  param?: string | undefined;
  /** Looks up a header of the answer by its lower-case name. */
  header?: ((name: string) => string | null | undefined) | undefined;
  /** The provider's own text, for refusals that have no code of their own; it is compared, and kept nowhere. */
  text?: string | undefined;
}

const unreachable: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
]);
// Bedrock answers these with a 403.
const badCredentials: ReadonlySet<string> = new Set([
  'ExpiredTokenException',
  'InvalidSignatureException',
  'UnrecognizedClientException',
]);

/** The publishable part of a provider's error: never its message, which can quote the prompt or the key. */
export class ProviderCallError extends Error {
  /** Only of a 400. */
  readonly refusal?: Refusal | undefined;

  constructor(
    override readonly name: string,
    readonly status?: number,
    readonly word?: string,
  ) {
    super('The call to the provider failed.');
  }

  /** Whether no connection came about, so that nothing was sent. */
  get isUnreachable(): boolean {
    return unreachable.has(this.word ?? '');
  }

  /** Whether every model of the account would have met the same; a 403 may be for a model that it may not use. */
  get concernsAccount(): boolean {
    return this.isUnreachable || this.status === 401 || badCredentials.has(this.word ?? '');
  }

  /** Whether an answer came whole that cannot be used: what the caller asks for may bring that about. */
  get isUnusable(): boolean {
    return this.name === unusable && this.word !== 'unfinished';
  }

  /** The parameter that only the caller can mend. */
  get refusedParameter(): 'toolChoice' | undefined {
    return this.refusal === 'toolChoice' ? this.refusal : undefined;
  }
}

const unusable = 'UnusableAnswer';

/** Undefined for a failure that is no such refusal. */
export const refusalOf = ({ cause }: Failure): Refusal | undefined =>
  cause instanceof ProviderCallError ? cause.refusal : undefined;

// Errors inside a stream come after the 200.
const refusedAccess: ReadonlySet<string> = new Set([
  ...badCredentials,
  'AccessDeniedException',
  'authentication_error',
  'permission_error',
]);

/** Whether the provider refused who asks, which is us, and not what the caller asked for. */
export const refusesCredentials = ({ code, cause }: Failure): boolean =>
  code === 'provider_rejected' &&
  cause instanceof ProviderCallError &&
  (cause.status === 401 || cause.status === 403 || refusedAccess.has(cause.word ?? ''));

/** Classifies an SDK's error by the provider's answer, or as `provider_error`; a failure of ours in it stays one. */
export function classifyError(error: unknown, facts: ErrorFacts, nowMs = Date.now()): Failure {
  const own = ownFailure(error);
  if (own) return own;
  const name = nameOf(error);
  const words = [...(facts.words ?? []), systemCode(error)].filter(isWord);
  const known =
    codeByWord(words, overStatus) ?? codeByStatus(facts.status) ?? codeByWord(words, withoutStatus);
  const code = (known === 'provider_rejected' ? codeByText(facts.text) : known) ?? known ?? 'provider_error';
  const isPassing = code === 'provider_error' || code === 'provider_rate_limited';
  const retryAfterMs = isPassing ? readRetryAfter(facts, nowMs) : undefined;
  const cause = new ProviderCallError(
    name,
    facts.status,
    words.find((word) => unreachable.has(word) || badCredentials.has(word)) ??
      words.find((word) => word !== name),
  );
  const refusal =
    code === 'provider_rejected' && facts.status === 400 ? readRefusal(facts.param, facts.text) : undefined;
  const contextTokens = code === 'context_length_exceeded' ? readContextTokens(facts.text) : undefined;
  const refused = refusal ? Object.assign(cause, { refusal }) : cause;
  return new Failure(code, { retryAfterMs, contextTokens, cause: refused });
}

/**
 * The limit that a refused conversation exceeds, in the words of OpenAI (and vLLM, OpenRouter, xAI), Anthropic, Gemini,
 * Together AI and Mistral, as pi's `utils/overflow.ts` lists them: a number, and nothing else of the text.
 */
const readContextTokens = (text = ''): number | undefined =>
  Number(contextLimit.exec(text.slice(0, 2000))?.[1]) || undefined;

const contextLimit =
  /\b(?:maximum (?:context|prompt) length (?:is|of) |configured limit of |tokens > |context limit: \d+ \+ \d+ > |number of tokens allowed \(|context length \(|for model with )(\d{1,9})\b/i;

/** Why an answer that came cannot be used. */
export type Unusable =
  | ('unfinished' | 'blank' | 'oversized')
  | ('unknown_tool' | 'nameless_call' | 'too_many_calls' | 'interleaved_calls')
  | ('malformed_arguments' | 'malformed_call' | 'malformed_json');

/**
 * The failure for an answer that came but cannot be used. A provider that says nothing is well and would charge for the
 * next blank, too, and one that says too much will again: neither is retried. Only an answer that breaks off says
 * anything to the breaker: callers with odd tools or schemas could open it for the others.
 */
export function unusableAnswer(what: Unusable, usage?: Usage): Failure {
  const cause = new ProviderCallError(unusable, undefined, what);
  return new Failure('provider_error', { retryable: what !== 'blank' && what !== 'oversized', usage, cause });
}

// Exceptions of Bedrock whose HTTP status misleads: 429 for a model that is still loading, 424 for one that broke,
// 400 for a quota.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html#API_runtime_Converse_Errors
const overStatus: ReadonlyMap<string, FailureCode> = new Map([
  ['ModelErrorException', 'provider_error'],
  ['ModelNotReadyException', 'provider_error'],
  ['ModelStreamErrorException', 'provider_error'],
  ['ModelTimeoutException', 'provider_error'],
  ['ServiceQuotaExceededException', 'provider_rate_limited'],
  ['ThrottlingException', 'provider_rate_limited'],
  // OpenAI's codes of a 400: https://platform.openai.com/docs/guides/error-codes
  ['context_length_exceeded', 'context_length_exceeded'],
  ['content_filter', 'content_blocked'],
  ['content_policy_violation', 'content_blocked'],
  ['invalid_prompt', 'content_blocked'],
]);

// Errors inside a stream come after the 200, so that only their word tells them apart.
const withoutStatus: ReadonlyMap<string, FailureCode> = new Map([
  ['rate_limit_error', 'provider_rate_limited'],
  ['rate_limit_exceeded', 'provider_rate_limited'],
  ['AccessDeniedException', 'provider_rejected'],
  ['ValidationException', 'provider_rejected'],
  ['authentication_error', 'provider_rejected'],
  ['billing_error', 'provider_rejected'],
  ['invalid_request_error', 'provider_rejected'],
  ['not_found_error', 'provider_rejected'],
  ['permission_error', 'provider_rejected'],
  ['request_too_large', 'provider_rejected'],
]);

function codeByWord(words: readonly string[], codes: ReadonlyMap<string, FailureCode>) {
  return words.map((word) => codes.get(word)).find((code) => code !== undefined);
}

/**
 * Anthropic, Bedrock and Vertex AI have no field that tells these refusals from any other 400, so here alone a text of
 * a provider decides. If it changes, or quotes a prompt, the failure gets another code; no text is passed on.
 */
const byText: readonly (readonly [RegExp, FailureCode])[] = [
  [/\b(prompt|input) is too long\b/i, 'context_length_exceeded'],
  [/\bexceeds? (context limit|the maximum number of tokens)\b/i, 'context_length_exceeded'],
  [/\bblocked by content filtering policy\b/i, 'content_blocked'],
];

const codeByText = (text = ''): FailureCode | undefined =>
  byText.find(([pattern]) => pattern.test(text))?.[1];

function codeByStatus(status: number | undefined): FailureCode | undefined {
  if (status === undefined || status < 400) return undefined;
  if (status === 429) return 'provider_rate_limited';
  // 408 is the provider's own timeout and 409 a lock it could not get: both SDKs that name them retry them.
  if (status === 408 || status === 409 || status >= 500) return 'provider_error';
  return 'provider_rejected';
}

/** How long the provider asks to wait (`Retry-After` of RFC 9110, or the `retry-after-ms` of OpenAI and Anthropic). */
function readRetryAfter({ header }: ErrorFacts, nowMs: number): number | undefined {
  const milliseconds = toNumber(header?.('retry-after-ms'));
  if (milliseconds !== undefined) return milliseconds;
  const value = header?.('retry-after');
  const seconds = toNumber(value);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const dateMs = value && httpDate.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

// `Date.parse` alone takes nearly anything for a date, even "-1".
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** A plain number of at most nine digits before the point: any longer wait is nonsense. */
function toNumber(value: string | null | undefined): number | undefined {
  return value && /^\d{1,9}(\.\d+)?$/.test(value) ? Number(value) : undefined;
}

function ownFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  return error instanceof Error ? ownFailure(error.cause) : undefined;
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value);
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error';
  const name = error.name === 'Error' ? error.constructor.name : error.name;
  return isWord(name) ? name : 'Error';
}

/** The operating system's or undici's code at the bottom of a network error, such as `ECONNRESET`. */
function systemCode(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return systemCode(error.cause) ?? (error as NodeJS.ErrnoException).code;
}

/** The provider's status and error type, for operators; undefined if no call has failed. */
export function providerErrorOf({ cause }: Failure): { status?: number; type: string } | undefined {
  if (!(cause instanceof ProviderCallError)) return undefined;
  const { name, status, word = name } = cause;
  return { ...(status !== undefined && { status }), type: word };
}

/** An expected failure for operators: its cause by its name, or in the provider's terms; no text and no stack. */
export function describeFailure({ code, cause }: Failure): object {
  if (!(cause instanceof ProviderCallError)) return { code, error: cause && nameOf(cause) };
  const { name: error, status, word } = cause;
  return { code, error, status, word };
}
