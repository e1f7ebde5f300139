import type { ProblemCode, ProblemError, ProviderId } from './contracts/contract.js';

/** The `code` of a problem: why a request failed. */
export type FailureCode = ProblemCode;

/** The fixed part of a failure: its HTTP status, its texts, and whether the same request may succeed later. */
interface FailureKind {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly retryable: boolean;
  /** Default delay before a retry, in milliseconds, where waiting helps. */
  readonly retryAfterMs?: number | undefined;
}

/** A failure that the same request meets again. */
const kind = (status: number, title: string, detail: string): FailureKind => ({
  status,
  title,
  detail,
  retryable: false,
});

/** One that may pass. */
const passing = (status: number, title: string, detail: string, retryAfterMs?: number): FailureKind => ({
  ...kind(status, title, detail),
  retryable: true,
  retryAfterMs,
});

/**
 * Programs know a conversation that is too long by words of other servers: this text has those that opencode
 * (`provider/error.ts`), pi (`utils/overflow.ts`), qwen-code (`contextLengthError.ts`), Cline, LangChain and LiteLLM
 * look for. `tokens` is the limit of the model, where its provider names it.
 */
export const describeExcess = (tokens?: number): string =>
  `This model's maximum context length is ${tokens === undefined ? 'exceeded' : `${tokens} tokens`} (context_length_exceeded): the conversation, with the reply that it asks for, exceeds the context window.`;

/** Says how long a provider was waited for: for an answer, or in a stream for the next sign of life. */
export const describeTimeout = (limitMs: number, fellSilent = false): string =>
  `The provider ${fellSilent ? 'sent nothing for' : 'did not answer within'} ${limitMs / 1000} s. A shorter conversation or another model may answer sooner.`;

/** The closed table of expected failures. Nothing outside it reaches a client, and no text here quotes a caller. */
export const failureKinds = {
  invalid_json: kind(400, 'Invalid JSON', 'The body is not well-formed JSON.'),
  invalid_request: kind(400, 'Invalid request', 'The request does not have the documented shape.'),
  empty_conversation: kind(400, 'Empty conversation', 'No message has any text.'),
  unknown_provider: kind(
    400,
    'Unknown provider',
    'X-LLM must be sent once and be exactly one of: openai, anthropic, bedrock, vertexai.',
  ),
  unauthorized: kind(
    401,
    'Unauthorized',
    'Valid credentials are required; WWW-Authenticate names the scheme.',
  ),
  insufficient_scope: kind(403, 'Insufficient scope', 'The access token does not allow this.'),
  suspended: kind(403, 'Suspended', 'The operators have suspended this user.'),
  cross_origin: kind(
    403,
    'Cross-origin request',
    "Only this server's own pages may do this with a session; Sec-Fetch-Site or Origin has to say so.",
  ),
  not_found: kind(404, 'Not found', 'There is nothing at this address.'),
  method_not_allowed: kind(405, 'Method not allowed', 'This address does not support the method; see Allow.'),
  slug_taken: kind(409, 'Slug taken', 'Another post has this slug.'),
  name_taken: kind(409, 'Name taken', 'There is a user of this name already.'),
  own_user: kind(
    409,
    'Own user',
    'An operator cannot remove or suspend their own user; another operator can, or the command line.',
  ),
  precondition_failed: kind(412, 'Precondition failed', 'The post has changed since; see ETag.'),
  payload_too_large: kind(413, 'Payload too large', 'The body is larger than this server accepts.'),
  unsupported_media_type: kind(415, 'Unsupported media type', 'Send the body as application/json in UTF-8.'),
  idempotency_key_reused: kind(
    422,
    'Idempotency key reused',
    'This Idempotency-Key was used with another request.',
  ),
  rate_limited: passing(429, 'Rate limited', 'Too many requests of this kind; see Retry-After.', 60_000),
  provider_error: passing(500, 'Provider error', 'The provider failed to give a usable answer.'),
  provider_rejected: kind(
    500,
    'Provider rejected',
    'The provider refused the request. Operators can see the status and the type of its error.',
  ),
  provider_rate_limited: passing(
    500,
    'Provider rate limited',
    'The provider refuses requests above its rate limit.',
  ),
  provider_timeout: passing(
    500,
    'Provider timeout',
    'The provider did not answer in time, or fell silent. A shorter conversation or another model may answer sooner.',
  ),
  content_blocked: kind(
    500,
    'Content blocked',
    "The provider's content filter blocked the conversation or the reply.",
  ),
  context_length_exceeded: kind(500, 'Context length exceeded', describeExcess()),
  provider_unavailable: passing(
    500,
    'Provider unavailable',
    'No worker can reach this provider at the moment.',
    5000,
  ),
  overloaded: passing(
    500,
    'Overloaded',
    'The wait for this provider is longer than the deadline of the request.',
  ),
  timeout: passing(500, 'Timeout', 'The deadline of the request passed before there was an answer.'),
  queue_unavailable: passing(500, 'Queue unavailable', 'The queue cannot be reached at the moment.', 2000),
  database_unavailable: passing(
    503,
    'Database unavailable',
    'The database cannot be reached at the moment.',
    2000,
  ),
  internal: kind(500, 'Internal error', 'Something went wrong on our side.'),
} as const satisfies Record<FailureCode, FailureKind>;

/** Every code, for schemas that carry one. */
export const failureCodes = Object.keys(failureKinds) as [FailureCode, ...FailureCode[]];

/** A time that a provider had: for an answer, or for the next sign of life of a stream that had shown some. */
export interface TimeLimit {
  readonly ms: number;
  readonly setting: 'timeoutMs' | 'firstTokenTimeoutMs' | 'idleTimeoutMs' | 'fallbackAfterMs';
  readonly fellSilent?: true;
}

/** The tokens of a conversation, and those of the reply that it asks for where they count, too. */
export interface AskedTokens {
  readonly inputTokens: number;
  readonly maxTokens?: number | undefined;
}

interface FailureFacts {
  /** Replaces the table's text; must never quote the caller or the provider. */
  detail?: string | undefined;
  /** Another HTTP status than the code's, where a specification asks for one. */
  status?: number | undefined;
  errors?: ProblemError[] | undefined;
  provider?: ProviderId | undefined;
  retryable?: boolean | undefined;
  /** How long to wait before trying again, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** The provider's model whose breaker refused the request; a name that has passed the check of models. */
  model?: string | undefined;
  /** Whether the provider refused our own credentials, and not what the caller asked for. */
  credentialsRefused?: boolean | undefined;
  /** The parameter that the provider refused, as `ModelParameters` names it, or the place in the provider's words. */
  refusedParameter?: string | undefined;
  /**
   * The capability that the provider refused, by the name that Claude Code has for it. Only callers who have sent the
   * value behind `beta_header:` may see it.
   */
  capability?: string | undefined;
  /** Whether the provider does not know the model that it was asked for. */
  modelUnknown?: boolean | undefined;
  /** The longest conversation that the model takes, in its tokens, where the provider names it. */
  contextTokens?: number | undefined;
  /** The size of the conversation that is too long, where the provider names it. */
  askedTokens?: AskedTokens | undefined;
  /** The time limit that ended a call, of `provider_timeout`. */
  limit?: TimeLimit | undefined;
  /** The category that a provider's classifier withheld a reply by, of `content_blocked`; `other` without a name. */
  refusal?: string | undefined;
  /** The tokens of a call that failed but is billed. */
  usage?: { inputTokens: number; outputTokens: number } | undefined;
  /** True if certainly no provider was called, so a retry cannot be charged twice; absent if one may have been. */
  neverCalled?: boolean | undefined;
  /** Extra response headers that the HTTP status requires (`Allow`, `WWW-Authenticate`). */
  headers?: Record<string, string> | undefined;
  cause?: unknown;
}

/** An expected failure. The API turns it into a problem, a worker into an outcome. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly status: number;
  readonly retryable: boolean;

  constructor(
    readonly code: FailureCode,
    readonly facts: FailureFacts = {},
  ) {
    super(code, { cause: facts.cause });
    this.status = facts.status ?? failureKinds[code].status;
    this.retryable = facts.retryable ?? failureKinds[code].retryable;
  }
}
