import type { Response as HttpResponse } from 'express';
import type { ProblemError } from '../../../shared/contracts/contract.js';
import { type AskedTokens, type Failure, type FailureCode, failureKinds } from '../../../shared/failures.js';
import { providerModels } from '../../../shared/models/provider-models.js';
import { requestIdOf } from '../../http/problem.js';
import { inBodyTerms } from '../request-options.js';

/** How failures look to clients of Anthropic's Messages API: https://platform.claude.com/docs/en/api/errors */

/** Statuses that are others here than in a problem. */
const statuses: Partial<Record<FailureCode, number>> = {
  provider_rejected: 400,
  content_blocked: 400,
  context_length_exceeded: 400,
  unknown_provider: 404,
  provider_rate_limited: 429,
  provider_error: 502,
  // Not Anthropic's 529, for which Claude Code makes three attempts in all; for a 503 it makes eleven.
  overloaded: 503,
  queue_unavailable: 503,
  provider_unavailable: 503,
  provider_timeout: 504,
  timeout: 504,
};

/** Types of other statuses: `api_error` from 500 on, else `invalid_request_error`. */
const types: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
]);

/** The wait of a failure that may pass, but does not say when. */
const usualRetryAfterMs = 1000;
/** Claude Code gives up if it would have to wait for longer. */
const maxRetryAfterS = 60;

/** Answers a failure as Anthropic's API would. */
export function sendAnthropicError(response: HttpResponse, raised: Failure): void {
  const failure = inBodyTerms(raised);
  const shouldRetry = mayPass(failure);
  const retryAfterS = retryAfterOf(failure, shouldRetry);
  const requestId = requestIdOf(response);
  response.status(statusOf(failure)).set({ 'request-id': requestId, 'x-should-retry': String(shouldRetry) });
  if (retryAfterS !== undefined) response.set('Retry-After', String(retryAfterS));
  const betas = (response.req.get('anthropic-beta') ?? '').split(',').map((beta) => beta.trim());
  response.type('application/json').send(JSON.stringify(toAnthropicError(failure, requestId, betas)));
}

/** The words by which the SDK's tool runner goes on without a thread (`ThreadState`). */
const noThreads = { error_code: 'thread_unsupported_request', unsupported: ['thread'] };

/** The body that describes the failure to a caller who has sent these betas. */
export function toAnthropicError(raised: Failure, requestId: string, betas: readonly string[] = []) {
  const failure = inBodyTerms(raised);
  const message = [describe(failure), tokenOf(failure, betas) ?? []].flat().join(' ');
  const isThread = failure.facts.errors?.[0]?.pointer === '/thread';
  const error = { type: typeOf(statusOf(failure)), message, ...(isThread && { details: noThreads }) };
  return { type: 'error', error, request_id: requestId };
}

/**
 * The data of the event `error` that ends a stream. A failure that may pass has the type `overloaded_error`, for which
 * Claude Code repeats the request; after any other type it asks for 64,000 tokens in one piece.
 */
export function toErrorEvent(failure: Failure, requestId: string, betas: readonly string[] = []) {
  const body = toAnthropicError(failure, requestId, betas);
  return mayPass(failure) ? { ...body, error: { ...body.error, type: 'overloaded_error' } } : body;
}

/** `stop_details` of a reply that a provider has withheld, which is no error here; undefined for other failures. */
export function stopDetailsOf({ code, facts: { refusal = 'other' } }: Failure) {
  if (code !== 'content_blocked') return undefined;
  return { type: 'refusal', category: refusal === 'other' ? null : refusal, explanation: null } as const;
}

function statusOf({ code, status, facts }: Failure): number {
  // A 401 would ask the caller for a login.
  if (facts.credentialsRefused) return 502;
  return facts.status ?? statuses[code] ?? status;
}

const typeOf = (status: number): string =>
  types.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error');

/** Whether the same request may succeed later. A refused one does not, even if its fallback may. */
function mayPass(failure: Failure): boolean {
  const status = statusOf(failure);
  return failure.retryable && failure.code !== 'provider_rejected' && (status === 429 || status >= 500);
}

/** Seconds; those of a limit that does not pass in time are as many as they are. */
function retryAfterOf({ code, facts }: Failure, shouldRetry: boolean): number | undefined {
  const usualMs = failureKinds[code].retryAfterMs ?? (shouldRetry ? usualRetryAfterMs : undefined);
  const { retryAfterMs = usualMs } = facts;
  if (retryAfterMs === undefined) return undefined;
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return shouldRetry ? Math.min(maxRetryAfterS, seconds) : seconds;
}

/** Our own sentence, behind the place that it is about. */
function describe({ code, facts }: Failure): string {
  const [first] = facts.errors ?? [];
  const { detail } = failureKinds[code];
  if (facts.askedTokens && facts.contextTokens) return describeTokens(facts.askedTokens, facts.contextTokens);
  if (code === 'provider_rejected') return [ownPlace(facts) ?? [], detail].flat().join(': ');
  if (first && facts.detail === undefined) return `${toPlace(first)} ${first.detail}.`;
  return facts.detail ?? (code === 'not_found' ? notHere : detail);
}

const notHere = 'There is nothing at this address; of Anthropic’s API, /v1/messages and /v1/models are here.';

/** In Anthropic's words, because Claude Code computes with the numbers. */
const describeTokens = ({ inputTokens, maxTokens }: AskedTokens, limit: number): string =>
  maxTokens === undefined
    ? `prompt is too long: ${inputTokens} tokens > ${limit} maximum.`
    : `input length and \`max_tokens\` exceed context limit: ${inputTokens} + ${maxTokens} > ${limit}, decrease input length or \`max_tokens\` and try again.`;

/** `/messages/0/content` → `messages.0.content:`; a header's name as it is; a place with other characters: the body. */
function toPlace({ pointer }: ProblemError): string {
  const place = pointer.replace(/^\//, '').replaceAll('/', '.');
  return /^[\w.-]{1,200}$/.test(place) ? `${place}:` : 'The body';
}

/**
 * The place that the provider refuses: in the caller's own request, or in one that was made from it. Of the latter only
 * the field is named, if there is one here.
 */
function ownPlace({ provider, refusedParameter: place = '' }: Failure['facts']): string | undefined {
  if (provider && providerModels[provider].takesMessages)
    return place.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) || undefined;
  return ownFields.find(([theirs]) => theirs.test(place))?.[1];
}

/** The fields of messages for those of the providers' requests, and for `ModelParameters`; the first match counts. */
const ownFields: readonly [theirs: RegExp, own: string][] = [
  [/^(input|contents|messages)/, 'messages'],
  [/^(instructions|system)/, 'system'],
  [/^((inferenceConfig|generationConfig)\.)?max/, 'max_tokens'],
  [/^(text\.format|response|output_config\.format|generationConfig\.response)/, 'output_config.format'],
  [/^(reasoning|output_config\.effort|generationConfig\.thinking)/, 'output_config.effort'],
  [/^thinking/, 'thinking'],
  [/^(tools|toolConfig\.tools|function_?declarations)/i, 'tools'],
  [/^(tool_?(config|choice)|parallel_?tool_?calls)/i, 'tool_choice'],
  [/^temperature/, 'temperature'],
  [/^top_?p/i, 'top_p'],
  [/^stop/, 'stop_sequences'],
];

/**
 * What the provider cannot do, as the last word of a message: Claude Code looks for it there, and no full stop may
 * follow. Of the header with the betas it has only what the caller has sent.
 */
function tokenOf({ code, facts }: Failure, betas: readonly string[]): string | undefined {
  const name = code === 'context_length_exceeded' ? 'prompt_too_long' : facts.capability;
  const [kind, value = ''] = name?.split(':') ?? [];
  if (name === undefined || (kind === 'beta_header' && !betas.includes(value))) return undefined;
  return `capability_rejected: ${name}`;
}
