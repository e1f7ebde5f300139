import { isModelAllowed } from '../shared/allowed-models.js';
import { Failure } from '../shared/failures.js';
import type { ChatJob } from '../shared/messages.js';
import type { Outcome } from '../shared/outcome.js';
import type { PoolSettings } from '../shared/pool-settings.js';
import type { Breaker } from './breaker.js';
import { openCallSignal } from './call-signal.js';
import type { Hold } from './hold.js';
import type { KeptOutcome } from './kept-outcomes.js';
import type { PoolMetrics } from './pool-metrics.js';
import type { FinishReason, Provider, ProviderEvent, ProviderRequest, Usage } from './provider.js';
import { withOneRetry } from './retry.js';
import type { RetryBudget } from './retry-budget.js';
import { Cancelled } from './running-jobs.js';

/** What a chat job works with; all but the last three are shared by a provider's jobs in a process. */
export interface ChatJobDeps {
  provider: Provider;
  settings: PoolSettings;
  breaker: Pick<Breaker, 'run'>;
  hold: Pick<Hold, 'leftMs' | 'watch'>;
  budget: RetryBudget;
  metrics: Pick<PoolMetrics, 'noteBegun' | 'watchCall'>;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
  /** Ends the job before its time: `Cancelled` when nobody waits for it any more, else the `Failure` that it ends with. */
  stop: AbortSignal;
  /** Hears of what ended a job without a reply: the operators' way to see why. */
  onFailure: (error: Failure) => void;
  /** There when the chat is kept. */
  kept?: KeptOutcome | undefined;
}

/**
 * Answers one conversation. In order:
 * 1. a kept chat that has ended already, here or elsewhere, is not answered again;
 * 2. a job nobody waits for any more makes no call;
 * 3. the model is settled, and has to be one that callers may name;
 * 4. the provider is called through the breaker, with one retry at most, never past the deadline;
 * 5. whatever happened becomes an outcome;
 * 6. that of a kept chat is recorded, unless another was recorded meanwhile, which then counts.
 *
 * `enqueuedAt` is in milliseconds since the epoch. Never throws for anything expected; what it throws is recorded nowhere.
 */
export async function runChatJob(job: ChatJob, enqueuedAt: number, deps: ChatJobDeps): Promise<Outcome> {
  const { now = Date.now } = deps;
  const startedAt = now();
  const earlier = await deps.kept?.find(job.deadline);
  if (earlier !== undefined) return earlier;
  deps.metrics.noteBegun(Math.max(0, startedAt - enqueuedAt));
  const outcome = await answer(job, { startedAt, enqueuedAt }, deps);
  return deps.kept ? deps.kept.settle(outcome) : outcome;
}

interface Times {
  startedAt: number;
  enqueuedAt: number;
}

async function answer(job: ChatJob, { startedAt, enqueuedAt }: Times, deps: ChatJobDeps): Promise<Outcome> {
  const { now = Date.now } = deps;
  // An API process of the release before this one has its own clock.
  const queueMs = Math.max(0, startedAt - enqueuedAt);
  const timings = () => ({ queueMs, providerMs: now() - startedAt });
  try {
    refuseIfUnwanted(job, { now, stop: deps.stop });
    const request = toProviderRequest(job, deps.settings);
    const { breaker, hold, budget, metrics, stop } = deps;
    const reply = await withOneRetry(
      (kind) =>
        breaker.run((onReply) => {
          const call = () => callOnce(request, { ...deps, deadline: job.deadline, onReply });
          return hold.watch(() => metrics.watchCall(call, kind), kind);
        }),
      {
        budget,
        hold,
        deadline: job.deadline,
        now,
        signal: stop,
      },
    );
    return toOutcome(reply, timings());
  } catch (error) {
    if (error instanceof Cancelled) return { kind: 'cancelled', ...timings() };
    if (!(error instanceof Failure)) throw error;
    deps.onFailure(error);
    return toFailedOutcome(error, timings());
  }
}

function refuseIfUnwanted(job: ChatJob, { now, stop }: { now: () => number; stop: AbortSignal }): void {
  stop.throwIfAborted();
  if (now() >= job.deadline) throw new Failure('timeout');
}

function toProviderRequest(job: ChatJob, settings: PoolSettings): ProviderRequest {
  const model = job.model ?? settings.model;
  const { model: defaultModel, models } = settings;
  // The API has looked already, but not where it has not heard of this pool yet.
  if (model === undefined || !isModelAllowed(model, { defaultModel, models }))
    throw new Failure('invalid_request');
  return { turns: job.turns, model, maxOutputTokens: settings.maxOutputTokens, stream: false };
}

/** A whole reply, collected from the provider's events. */
interface Reply {
  text: string;
  reason: FinishReason;
  model: string;
  usage: Usage | undefined;
}

interface CallDeps extends Pick<ChatJobDeps, 'provider' | 'settings' | 'now' | 'stop'> {
  deadline: number;
  onReply: () => void;
}

async function callOnce(request: ProviderRequest, deps: CallDeps): Promise<Reply> {
  const call = openCallSignal({
    timeoutMs: deps.settings.timeoutMs,
    deadline: deps.deadline,
    now: deps.now,
    stop: deps.stop,
  });
  try {
    return await collect(deps.provider.generate(request, call.signal), deps.onReply);
  } finally {
    call.release();
  }
}

async function collect(events: AsyncIterable<ProviderEvent>, onReply: () => void): Promise<Reply> {
  let text = '';
  for await (const event of events) {
    onReply();
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
