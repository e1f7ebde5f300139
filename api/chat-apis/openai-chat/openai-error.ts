import type { Response as HttpResponse } from 'express';
import { Failure, type FailureCode, failureKinds } from '../../../shared/failures.js';
import type { ParameterName } from '../../../shared/models/model-parameters.js';
import { fieldNames } from './completion-body.js';

/** How a failure looks to OpenAI's clients, which try again by themselves where `x-should-retry` does not forbid it. */
interface ErrorKind {
  readonly status: number;
  /** Whether clients try again; absent means if the failure is retryable. */
  readonly shouldRetry?: boolean;
}

const rateLimited: ErrorKind = { status: 429, shouldRetry: true };
const unavailable: ErrorKind = { status: 503, shouldRetry: true };

/** Failures that have another status here, or another rule for when clients try again. */
const errorKinds: Partial<Record<FailureCode, ErrorKind>> = {
  unknown_provider: { status: 404, shouldRetry: false },
  provider_rejected: { status: 400, shouldRetry: false },
  content_blocked: { status: 400, shouldRetry: false },
  context_length_exceeded: { status: 400, shouldRetry: false },
  rate_limited: rateLimited,
  provider_rate_limited: rateLimited,
  overloaded: unavailable,
  queue_unavailable: unavailable,
  database_unavailable: unavailable,
  // Its breaker is open on every worker, or there is none: a second is not enough.
  provider_unavailable: { status: 503, shouldRetry: false },
  provider_error: { status: 502 },
  // A call that timed out may be charged, and each retry of the client would be charged again.
  provider_timeout: { status: 504, shouldRetry: false },
  timeout: { status: 504, shouldRetry: false },
  internal: { status: 500 },
};

/** The wait of a failure that says that waiting helps, but not how long. */
const usualRetryAfterMs = 1000;

/** For a model that does not exist, or that callers may not use. */
export const modelNotFound = (detail = mustBeUsable): Failure =>
  new Failure('not_found', { errors: [{ pointer: '/model', detail }] });

const mustBeUsable =
  'must name a model that may be used here, as provider/model or with X-LLM: openai, anthropic, bedrock or vertexai; GET /v1/models lists models';

/** The body that describes the failure; its schema says what the fields mean. */
export function toOpenAiError(raised: Failure) {
  const failure = inBodyTerms(raised);
  const { code, facts } = failure;
  const [first] = facts.errors ?? [];
  const { refusedParameter: refused } = facts;
  const param = first ? toParam(first.pointer) : (fieldNames[refused as ParameterName] ?? ownField(refused));
  const isModel = code === 'not_found' && param === 'model';
  const described =
    first && facts.detail === undefined ? `${param ?? 'The body'} ${first.detail}.` : undefined;
  return {
    error: {
      message: described ?? facts.detail ?? (code === 'not_found' ? notHere : failureKinds[code].detail),
      type: typeOf(statusOf(failure)),
      param: param ?? null,
      code: (isModel ? 'model_not_found' : openAiCodes.get(code)) ?? code,
    },
  };
}

/**
 * The fields of chat completions that stand for those of the providers' requests: OpenAI's Responses, Claude's
 * Messages, Converse and Gemini's `generateContent`. Their places within a conversation are others than the caller's.
 */
const ownFields: readonly [provider: RegExp, own: string][] = [
  [/^(input|instructions|contents|system|systemInstruction|system_instruction)(?!\w)/, 'messages'],
  [/^(max_output_tokens|max_tokens|(inferenceConfig|generationConfig)\.max\w+)$/, 'max_completion_tokens'],
  [/^(text\.format|output_config\.format|generationConfig\.response\w+)(?!\w)/, 'response_format'],
  [/^text\.verbosity$/, 'verbosity'],
  [/^(reasoning|thinking|output_config\.effort|generationConfig\.thinkingConfig)(?!\w)/, 'reasoning_effort'],
  [/^toolConfig(?!\w)/, 'tool_choice'],
];

const ownField = (place: string | undefined): string | undefined =>
  ownFields.find(([provider]) => place !== undefined && provider.test(place))?.[1] ?? place;

const notHere = 'There is nothing at this address; /v1 has chat/completions and models of OpenAI’s API.';

const openAiCodes: ReadonlyMap<FailureCode, string> = new Map([['content_blocked', 'content_filter']]);

/** Answers a failure as OpenAI's API would. */
export function sendOpenAiError(response: HttpResponse, raised: Failure): void {
  const failure = inBodyTerms(raised);
  const status = statusOf(failure);
  const kind = errorKinds[failure.code];
  const shouldRetry = kind ? (failure.facts.neverCalled ?? kind.shouldRetry ?? failure.retryable) : false;
  const usualMs = shouldRetry || status === 503 ? usualRetryAfterMs : undefined;
  const { retryAfterMs = failureKinds[failure.code].retryAfterMs ?? usualMs } = failure.facts;
  response.status(status).set('x-should-retry', String(shouldRetry));
  if (retryAfterMs !== undefined) {
    response.set('Retry-After', String(Math.ceil(retryAfterMs / 1000)));
    response.set('retry-after-ms', String(Math.ceil(retryAfterMs)));
  }
  response.type('application/json').send(JSON.stringify(toOpenAiError(failure)));
}

function statusOf(failure: Failure): number {
  if (failure.facts.credentialsRefused) return 502;
  return failure.facts.status ?? errorKinds[failure.code]?.status ?? failure.status;
}

/** The failure where the model comes from the body: errors about the model point there. */
export function inBodyTerms(failure: Failure): Failure {
  const { code, facts } = failure;
  if (facts.modelUnknown)
    return modelNotFound('names a model that its provider does not know; GET /v1/models lists models');
  return code === 'invalid_request' && facts.errors?.[0]?.pointer === 'X-LLM-Model'
    ? modelNotFound()
    : failure;
}

const typeOf = (status: number): string => {
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
};

/** `/messages/0/content` → `messages[0].content`; undefined for the body itself; a header's name as it is. */
function toParam(pointer: string): string | undefined {
  if (!pointer.startsWith('/')) return pointer || undefined;
  const steps = pointer.slice(1).split('/');
  return steps
    .map((step, place) => (/^\d+$/.test(step) ? `[${step}]` : `${place > 0 ? '.' : ''}${step}`))
    .join('');
}
