import type { ChatStatus, ProviderId } from '../../shared/contracts/contract.js';
import { describeExcess, describeTimeout, Failure } from '../../shared/failures.js';
import { modelFailing, modelNotAllowed } from '../../shared/fleet/live-pools.js';
import { type EndedAttempt, refusalOf } from '../../shared/protocol/attempts.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { resultTimeoutMs } from '../../shared/protocol/stored-chat.js';
import { invalid } from '../../shared/validation.js';
import type { JobResult } from '../fleet-link/chat-receiver.js';

/** A finished (`ok`) reply or one cut at the token limit (`truncated`). */
export type Completion = Extract<Outcome, { text: string }>;

/** The reply; throws the failure that the outcome stands for, and `timeout` where there is no outcome yet. */
export function toCompletion(result: JobResult, provider: ProviderId): Completion {
  if (result.state !== 'settled') {
    const neverCalled = (result.state === 'queued' && !result.wasTaken) || undefined;
    throw new Failure('timeout', { provider, neverCalled });
  }
  if (isCompletion(result.outcome)) return result.outcome;
  throw outcomeToFailure(result.outcome, provider);
}

/** The error, which says for how long the request has waited if it is `timeout`, and how to wait for longer. */
export function withWait(error: unknown, { waitedMs, maxMs }: { waitedMs: number; maxMs: number }): unknown {
  if (!(error instanceof Failure) || error.code !== 'timeout') return error;
  const [waitedS, maxS] = [Math.round(waitedMs / 1000), Math.floor(maxMs / 1000)];
  const detail = `No answer within ${waitedS} s, the deadline of this request. Ask for up to ${maxS} s with Prefer: wait=N, or fetch the answer later with Prefer: respond-async.`;
  return new Failure('timeout', { ...error.facts, detail });
}

/** Whether the outcome is a reply. */
export const isCompletion = (outcome: Outcome): outcome is Completion =>
  outcome.kind === 'ok' || outcome.kind === 'truncated';

/** Who has given the outcome, of a chat whose request names this provider. */
export const answeredBy = ({ attempts }: Outcome, provider: ProviderId): ProviderId =>
  attempts?.at(-1)?.provider ?? provider;

/** All attempts as a structured field (RFC 9651), where there was more than one. */
export const attemptsHeader = (attempts?: readonly EndedAttempt[]): Record<string, string> =>
  attempts ? { 'X-LLM-Attempts': attempts.map(describeAttempt).join(', ') } : {};

function describeAttempt({ provider, code, usage }: EndedAttempt): string {
  const tokens = usage ? `;input=${usage.inputTokens};output=${usage.outputTokens}` : '';
  return `${provider};code=${code}${tokens}`;
}

/** The failure that an outcome without a reply means to its caller. */
export function outcomeToFailure(outcome: Exclude<Outcome, Completion>, provider: ProviderId): Failure {
  switch (outcome.kind) {
    case 'blocked':
      return new Failure('content_blocked', {
        provider: answeredBy(outcome, provider),
        refusal: outcome.refusal,
        usage: outcome.usage,
        ...attempted(outcome),
      });
    case 'cancelled':
      // Other cancelled jobs have no caller.
      return new Failure('internal', { provider, detail: 'The chat was cancelled.', retryable: false });
    case 'failed':
      return failedToFailure(outcome, provider);
  }
}

type Failed = Extract<Outcome, { kind: 'failed' }>;

function failedToFailure(outcome: Failed, provider: ProviderId): Failure {
  const { code, retryable, retryAfterMs, credentialsRefused, providerError, limitMs, fellSilent } = outcome;
  const place = providerError?.place;
  const { refusedParameter = place } = outcome;
  // A worker refuses a request only for its images or its model, and the model rarely: heartbeats list the models.
  if (code === 'invalid_request')
    return refusedParameter === 'images' ? invalid('/messages', imageElsewhere) : modelNotAllowed(provider);
  const model = outcome.failingModel ?? outcome.attempts?.[0]?.model;
  // Only failures of a model's breaker carry the time of the next try.
  const isFailing = code === 'provider_unavailable' && retryAfterMs !== undefined;
  return new Failure(code, {
    ...(isFailing && modelFailing({ provider, model }, retryAfterMs).facts),
    ...(code === 'provider_timeout' && limitMs && { detail: describeTimeout(limitMs, fellSilent) }),
    ...(outcome.contextTokens && { detail: describeExcess(outcome.contextTokens) }),
    ...(code === 'provider_rejected' && place && { detail: `${refusedPart} ${place}.` }),
    ...(outcome.refusedParameter === 'messages' && { detail: laterSystem(provider) }),
    provider,
    retryable,
    retryAfterMs,
    ...attempted(outcome),
    credentialsRefused,
    refusedParameter,
    capability: outcome.capability,
    refusal: refusalOf(outcome.attempts?.[0] ?? outcome),
    usage: outcome.usage,
    contextTokens: outcome.contextTokens,
    askedTokens: outcome.askedTokens,
    modelUnknown: refusesModel(outcome) || undefined,
  });
}

const attempted = ({ attempts }: Outcome) => attempts && { headers: attemptsHeader(attempts) };

const refusedPart = 'The provider refused a part of the request:';
const laterSystem = (provider: ProviderId): string =>
  `This server or model of ${provider} takes no system text after other messages; put it before them (marked-system).`;
const imageElsewhere =
  'name an image on a host that this provider may not fetch from; send it as a data: URL instead';

/** Whether the provider does not know the model: no other part of the address of a call comes from the caller. */
const refusesModel = ({ code, providerError }: Failed): boolean =>
  code === 'provider_rejected' &&
  (providerError?.status === 404 || providerError?.type === 'not_found_error');

/** The status of a stored chat; `deadline` and `now` are milliseconds since the epoch. */
export function statusOf(
  result: JobResult,
  { deadline, now }: { deadline: number; now: number },
): ChatStatus {
  if (result.state === 'settled') return endOf(result.outcome);
  // A live worker may still record the outcome, but takes no longer than this.
  if (result.state === 'running' && now < deadline + resultTimeoutMs) return 'running';
  return now < deadline ? 'queued' : 'expired';
}

function endOf(outcome: Outcome): ChatStatus {
  if (isCompletion(outcome)) return 'completed';
  if (outcome.kind === 'cancelled') return 'cancelled';
  // The outcome of a worker that found the deadline over; by then the chat was shown as expired.
  return outcome.kind === 'failed' && outcome.code === 'timeout' ? 'expired' : 'failed';
}
