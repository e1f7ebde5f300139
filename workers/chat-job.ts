import { Failure } from '../shared/failures.js';
import type { ChatJob } from '../shared/messages.js';
import type { Outcome } from '../shared/outcome.js';
import type { PoolSettings } from '../shared/pool-settings.js';
import type { Breaker } from './breaker.js';
import { openCallSignal } from './call-signal.js';
import type { FinishReason, Provider, ProviderRequest, Usage } from './provider.js';
import { withOneRetry } from './retry.js';
import type { RetryBudget } from './retry-budget.js';

/** What one provider's chat jobs share in a process. */
export interface ChatJobDeps {
  provider: Provider;
  settings: PoolSettings;
  breaker: Breaker;
  budget: RetryBudget;
  /** Hears of what ended a job without a reply: the operators' way to see why. */
  onFailure: (error: Failure) => void;
  /** Aborts the calls that are still running when the process has to end. */
  shutdown: AbortSignal;
}

/**
 * Answers one conversation. In order:
 * 1. a job nobody waits for any more makes no call;
 * 2. the model is settled;
 * 3. the provider is called through the breaker, with one retry at most, never past the deadline;
 * 4. whatever happened becomes an outcome.
 *
 * `enqueuedAt` is in milliseconds since the epoch. Never throws for anything expected.
 */
export async function runChatJob(job: ChatJob, enqueuedAt: number, deps: ChatJobDeps): Promise<Outcome> {
  const startedAt = Date.now();
  const timings = () => ({ queueMs: startedAt - enqueuedAt, providerMs: Date.now() - startedAt });
  try {
    refuseIfExpired(job);
    const request = toProviderRequest(job, deps.settings);
    const reply = await withOneRetry(() => deps.breaker.run(() => callOnce(request, job.deadline, deps)), {
      budget: deps.budget,
      deadline: job.deadline,
      signal: deps.shutdown,
    });
    return toOutcome(reply, timings());
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    deps.onFailure(error);
    return toFailedOutcome(error, timings());
  }
}

function refuseIfExpired(job: ChatJob): void {
  if (Date.now() >= job.deadline) throw new Failure('timeout');
}

function toProviderRequest(job: ChatJob, settings: PoolSettings): ProviderRequest {
  const model = job.model ?? settings.model;
  if (model === undefined) throw new Failure('invalid_request');
  return { turns: job.turns, model, maxOutputTokens: settings.maxOutputTokens, stream: false };
}

/** A whole reply, collected from the provider's events. */
interface Reply {
  text: string;
  reason: FinishReason;
  model: string;
  usage: Usage | undefined;
}

async function callOnce(request: ProviderRequest, deadline: number, deps: ChatJobDeps): Promise<Reply> {
  const call = openCallSignal({ timeoutMs: deps.settings.timeoutMs, deadline, shutdown: deps.shutdown });
  try {
    return await collect(deps.provider, request, call.signal);
  } finally {
    call.release();
  }
}

async function collect(provider: Provider, request: ProviderRequest, signal: AbortSignal): Promise<Reply> {
  let text = '';
  for await (const event of provider.generate(request, signal)) {
    if (event.type === 'finish')
      return { text, reason: event.reason, model: event.model, usage: event.usage };
    text += event.text;
  }
  throw new Failure('provider_error');
}

type Timings = Pick<Outcome, 'queueMs' | 'providerMs'>;

function toOutcome({ text, reason, model, usage }: Reply, timings: Timings): Outcome {
  const completion = { text, model, ...(usage && { usage }), ...timings };
  switch (reason) {
    case 'stop':
      return { kind: 'ok', ...completion };
    case 'length':
      return { kind: 'truncated', ...completion };
    case 'blocked':
      return { kind: 'blocked', ...timings };
  }
}

function toFailedOutcome({ code, retryable, facts }: Failure, timings: Timings): Outcome {
  return {
    kind: 'failed',
    code,
    retryable,
    ...(facts.retryAfterMs === undefined ? {} : { retryAfterMs: facts.retryAfterMs }),
    ...timings,
  };
}
