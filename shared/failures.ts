import type { ProblemCode, ProblemError, ProviderId } from './contract.js';

/** The `code` of a problem: why a request failed. */
export type FailureCode = ProblemCode;

/** What is fixed about a failure: its HTTP status, its words, and whether the same request may succeed later. */
interface FailureKind {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly retryable: boolean;
  /** How long to wait before trying again, in milliseconds, where waiting helps and nothing better is known. */
  readonly retryAfterMs: number | undefined;
}

const kind = (
  status: number,
  title: string,
  detail: string,
  { retryable = false, retryAfterMs }: { retryable?: boolean; retryAfterMs?: number } = {},
): FailureKind => ({ status, title, detail, retryable, retryAfterMs });

const retryable = { retryable: true };

/** The closed table of expected failures. Nothing outside it reaches a client, and no text here quotes a caller. */
export const failureKinds = {
  invalid_json: kind(400, 'Invalid JSON', 'The body is not well-formed JSON.'),
  invalid_request: kind(400, 'Invalid request', 'The request does not have the documented shape.'),
  empty_conversation: kind(400, 'Empty conversation', 'No message has any text: there is nothing to say.'),
  unknown_provider: kind(
    400,
    'Unknown provider',
    'X-LLM must be sent once and be exactly one of: openai, anthropic, bedrock, vertexai.',
  ),
  unauthorized: kind(
    401,
    'Unauthorized',
    'Valid credentials are required; WWW-Authenticate says of which kind.',
  ),
  insufficient_scope: kind(403, 'Insufficient scope', 'The access token does not allow this.'),
  not_found: kind(404, 'Not found', 'There is nothing at this address.'),
  method_not_allowed: kind(405, 'Method not allowed', 'This address does not support the method; see Allow.'),
  slug_taken: kind(409, 'Slug taken', 'Another post has this slug.'),
  precondition_failed: kind(412, 'Precondition failed', 'The post has changed since; see ETag.'),
  payload_too_large: kind(413, 'Payload too large', 'The body is larger than this server accepts.'),
  unsupported_media_type: kind(415, 'Unsupported media type', 'Send the body as application/json in UTF-8.'),
  idempotency_key_reused: kind(
    422,
    'Idempotency key reused',
    'This Idempotency-Key was used with another request.',
  ),
  rate_limited: kind(429, 'Rate limited', 'Too many requests of this kind; see Retry-After.', {
    ...retryable,
    retryAfterMs: 60_000,
  }),
  provider_error: kind(500, 'Provider error', 'The provider failed to give a usable answer.', retryable),
  provider_rejected: kind(
    500,
    'Provider rejected',
    'The provider refused the request; the operators can see why.',
  ),
  provider_rate_limited: kind(
    500,
    'Provider rate limited',
    'The provider is limiting our requests.',
    retryable,
  ),
  provider_timeout: kind(500, 'Provider timeout', 'The provider did not answer in time.', retryable),
  content_blocked: kind(
    500,
    'Content blocked',
    "The provider's content filter blocked the conversation or the reply.",
  ),
  provider_unavailable: kind(
    500,
    'Provider unavailable',
    'No worker can reach this provider at the moment.',
    { ...retryable, retryAfterMs: 5000 },
  ),
  overloaded: kind(
    500,
    'Overloaded',
    'The wait for this provider is longer than the deadline of the request.',
    retryable,
  ),
  timeout: kind(500, 'Timeout', 'The deadline of the request passed before there was an answer.', retryable),
  queue_unavailable: kind(500, 'Queue unavailable', 'The queue cannot be reached at the moment.', {
    ...retryable,
    retryAfterMs: 2000,
  }),
  database_unavailable: kind(503, 'Database unavailable', 'The database cannot be reached at the moment.', {
    ...retryable,
    retryAfterMs: 2000,
  }),
  internal: kind(500, 'Internal error', 'Something went wrong on our side.'),
} as const satisfies Record<FailureCode, FailureKind>;

/** Every code, for schemas that carry one. */
export const failureCodes = Object.keys(failureKinds) as [FailureCode, ...FailureCode[]];

interface FailureFacts {
  /** Says more than the table does; must never quote the caller or the provider. */
  detail?: string;
  /** Another HTTP status than the code's, where a specification asks for one. */
  status?: number;
  errors?: ProblemError[];
  provider?: ProviderId;
  retryable?: boolean;
  /** How long to wait before trying again, in milliseconds. */
  retryAfterMs?: number;
  /** Extra response headers that the HTTP status demands (`Allow`, `WWW-Authenticate`). */
  headers?: Record<string, string>;
  cause?: unknown;
}

/** An expected failure. Thrown where it is noticed; ends as a problem at the API or as an outcome in a worker. */
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
