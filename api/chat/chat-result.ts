import type { ChatStatus, ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { resultTimeoutMs } from '../../shared/protocol/stored-chat.js';
import type { JobResult } from './jobs/job-results.js';
import { modelNotAllowed } from './pools/pool-registry.js';

/** A finished (`ok`) reply or one cut at the token limit (`truncated`). */
export type Completion = Extract<Outcome, { text: string }>;

/** The reply, or throws the failure that the outcome stands for; where there is none, the deadline has passed. */
export function toCompletion(record: JobResult, provider: ProviderId): Completion {
  if (record.state !== 'settled') throw new Failure('timeout', { provider });
  if (isCompletion(record.outcome)) return record.outcome;
  throw toFailure(record.outcome, provider);
}

/** As `toCompletion`, for an outcome that was there before the command; the failure says so in its headers. */
export function replay(outcome: Outcome, provider: ProviderId): Completion {
  if (isCompletion(outcome)) return outcome;
  const { code, facts } = toFailure(outcome, provider);
  throw new Failure(code, { ...facts, headers: { 'Idempotency-Replayed': 'true' } });
}

/** Whether the outcome is a reply. */
export const isCompletion = (outcome: Outcome): outcome is Completion =>
  outcome.kind === 'ok' || outcome.kind === 'truncated';

/** What those are told who ask for a reply that will not come. */
export function toFailure(outcome: Exclude<Outcome, Completion>, provider: ProviderId): Failure {
  switch (outcome.kind) {
    case 'blocked':
      return new Failure('content_blocked', { provider });
    case 'cancelled':
      // Nobody waits for any other job that is cancelled.
      return new Failure('internal', { provider, detail: 'The chat was cancelled.', retryable: false });
    case 'failed': {
      const { code, retryable, retryAfterMs } = outcome;
      // The only thing a worker can find wrong with a request; usually the pool's heartbeat has told before.
      if (code === 'invalid_request') return modelNotAllowed(provider);
      return new Failure(code, { provider, retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) });
    }
  }
}

/** Where a stored chat stands, by what the records say of its job. */
export function statusOf(
  record: JobResult,
  { deadline, now }: { deadline: number; now: number },
): ChatStatus {
  if (record.state === 'settled') return endOf(record.outcome);
  // A worker that is alive may yet write down how it ended, but takes no longer than that.
  if (record.state === 'running' && now < deadline + resultTimeoutMs) return 'running';
  return now < deadline ? 'queued' : 'expired';
}

function endOf(outcome: Outcome): ChatStatus {
  if (isCompletion(outcome)) return 'completed';
  if (outcome.kind === 'cancelled') return 'cancelled';
  // A worker that finds the deadline over says so; by then the chat has been shown as expired.
  return outcome.kind === 'failed' && outcome.code === 'timeout' ? 'expired' : 'failed';
}
