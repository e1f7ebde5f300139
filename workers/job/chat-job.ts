import type { PoolSettings } from '../../shared/config/pool-settings.js';
import { Failure } from '../../shared/failures.js';
import type { Attempt, EndedAttempt } from '../../shared/protocol/attempts.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { Provider, ProviderReply } from '../providers/provider.js';
import type { Breaker } from './breaker.js';
import { isUnreachable } from './call-samples.js';
import { CallSignal } from './call-signal.js';
import type { Circuit } from './circuit.js';
import type { Circuits } from './circuits.js';
import type { LoadTracker } from './load-tracker.js';
import { type ModelRequest, toModelRequest } from './model-request.js';
import type { NextAttempt } from './next-attempt.js';
import { conclude, type JobEnd, toEndedAttempt, toFailedOutcome, toOutcome } from './outcomes.js';
import type { PoolMetrics } from './pool-metrics.js';
import { patienceFor, withOneRetry } from './retry.js';
import { Cancelled, type RunningJob } from './running-job.js';
import type { StoredResult } from './stored-results.js';
import { type CallKind, NotBegun } from './waiting-jobs.js';

/** What a chat job works with; all but the last six are shared by the jobs of a pool. */
export interface ChatJobDeps {
  provider: Provider;
  settings: PoolSettings;
  /** The breaker of what concerns the account, and so every model. */
  account: Pick<Breaker, 'state' | 'isProbing' | 'run'>;
  circuits: Pick<Circuits, 'of'>;
  load: Pick<LoadTracker, 'meanJobMs'>;
  metrics: Pick<PoolMetrics, 'watchCall'>;
  /** Whether the job may go back to the queue when the provider cannot be reached from here. */
  mayRequeue: () => boolean;
  /** Called with what a job failed with: the operators' way to see why. */
  onFailure: (error: Failure) => void;
  storedResult?: StoredResult | undefined;
  nextAttempt?: Pick<NextAttempt, 'begin'> | undefined;
  isRestarted?: boolean;
  /** The attempt that follows it already, begun by a worker that died before this one had ended. */
  begunNext?: Attempt | undefined;
}

/**
 * Answers one conversation. In order:
 * 1. a stored chat that has ended already, here or elsewhere, keeps its outcome;
 * 2. a job that was cancelled, or that comes too late to be answered in time, makes no call;
 * 3. the model is the job's or the pool's, and has to be one that callers may name;
 * 4. the provider is called through the model's circuit, with one retry at most, never past the deadline, nor after the
 *    first delta of a stream;
 * 5. whatever happened becomes an outcome;
 * 6. a failure that another provider may mend is passed on to the next of the fallback, unless a stream has begun;
 * 7. else the outcome of a stored chat is recorded, unless another one was recorded meanwhile, which then counts.
 *
 * Throws `NotBegun` for a job that goes back to its queue, and unexpected errors; neither is recorded as an outcome.
 */
export async function runChatJob(job: RunningJob, chatJob: ChatJob, deps: ChatJobDeps): Promise<JobEnd> {
  const recorded = await deps.storedResult?.find(chatJob.deadline);
  if (recorded !== undefined) return { own: recorded, outcome: recorded };
  if (deps.begunNext) return endBefore(deps.begunNext, job);
  if (deps.isRestarted) job.deltas?.announceRestart();
  const own = await answer(job, chatJob, deps);
  job.begin();
  const ended = toEndedAttempt(own, chatJob);
  const followed = job.deltas?.hasBegun ? undefined : await passOn(own, ended, deps);
  if (followed) return { own, outcome: followed };
  const outcome = conclude(own, [...(chatJob.earlier ?? []), ended]);
  return { own, outcome: deps.storedResult ? await deps.storedResult.record(outcome) : outcome };
}

/** The end of a job that has passed its chat on already; nobody knows any more why. */
function endBefore(next: Attempt, { timings }: RunningJob): JobEnd {
  const own: Outcome = { kind: 'failed', code: 'internal', retryable: true, ...timings };
  return { own, outcome: { ...own, next } };
}

/** The outcome of a job that another attempt follows; undefined when the chat ends with it. */
async function passOn(
  own: Outcome,
  ended: EndedAttempt,
  { nextAttempt }: ChatJobDeps,
): Promise<Outcome | undefined> {
  if (own.kind !== 'failed') return undefined;
  const next = await nextAttempt?.begin(ended);
  return next && { ...own, next };
}

async function answer(job: RunningJob, chatJob: ChatJob, deps: ChatJobDeps): Promise<Outcome> {
  const { now, slot, signal, deltas } = job;
  try {
    const startBy = startOf(chatJob);
    throwIfCancelled(startBy, job);
    // A stream only has to begin by then.
    if (deltas === undefined)
      throwIfTooLate({ waitedMs: job.timings.queueMs, leftMs: startBy - now() }, deps.load);
    const request = toModelRequest(chatJob, deps.settings);
    const circuit = deps.circuits.of(request.model);
    const attempt = (kind: CallKind) => attemptOnce(circuit, { job, chatJob, request, kind }, deps);
    // Later attempts are not retried: otherwise one chat could make twice as many calls as it has targets.
    const mayRetry = () => (chatJob.attempt ?? 1) === 1 && !deltas?.hasBegun;
    const limits = {
      budget: circuit.budget.shareOf(chatJob.user),
      slot,
      cooldown: circuit.cooldown,
      deadline: startBy,
      now,
      signal,
      mayRetry,
      hasFallback: deps.nextAttempt !== undefined,
    };
    const reply = await withOneRetry(attempt, limits);
    const asked = chatJob.earlier && { askedModel: request.model };
    return toOutcome(reply, { ...job.timings, ...asked, ...(deltas && { callId: deltas.callId }) });
  } catch (error) {
    if (error instanceof Cancelled) return { kind: 'cancelled', ...job.timings };
    if (!(error instanceof Failure)) throw error;
    deps.onFailure(error);
    return toFailedOutcome(error, job.timings);
  }
}

/** When a call is of no use any more that has not begun to answer, in milliseconds since the epoch. */
const startOf = ({ deadline, firstDeltaBy = deadline }: ChatJob): number => Math.min(deadline, firstDeltaBy);

interface Call {
  job: RunningJob;
  chatJob: ChatJob;
  request: ModelRequest;
  kind: CallKind;
}

/**
 * A job whose call never reached the provider goes back to the queue, for a worker that reaches the provider; one with a fallback goes
 * on to that.
 */
async function attemptOnce(circuit: Circuit, attempt: Call, deps: ChatJobDeps): Promise<ProviderReply> {
  const { job, chatJob, kind } = attempt;
  const { account, metrics, nextAttempt } = deps;
  const deadline = startOf(chatJob);
  const patience = nextAttempt && { patienceMs: patienceFor(deadline - job.now()) };
  try {
    const caller = { deadline, stop: job.signal, slot: job.slot, user: chatJob.user, ...patience };
    return await circuit.run(caller, kind, (onReply) => {
      if (!kind.isRetry && refusesCalls(account))
        throw nextAttempt ? new Failure('provider_unavailable') : new NotBegun();
      job.begin();
      const call = (onFirstDelta: () => void) => {
        const onBegun = () => {
          onReply();
          job.recordFirstDelta();
          onFirstDelta();
        };
        return callOnce(attempt, onBegun, deps);
      };
      return account.run(() => metrics.watchCall(call, kind));
    });
  } catch (error) {
    const mayGoBack = !kind.isRetry && !nextAttempt && !job.deltas?.hasBegun;
    if (mayGoBack && isUnreachable(error) && deps.mayRequeue()) throw new NotBegun();
    throw error;
  }
}

const refusesCalls = ({ state, isProbing }: ChatJobDeps['account']): boolean =>
  state === 'open' || (state === 'half-open' && isProbing);

function throwIfCancelled(startBy: number, { now, signal }: RunningJob): void {
  signal.throwIfAborted();
  if (now() >= startBy) throw new Failure('timeout');
}

/**
 * A job that has waited for most of its time, and has less than half of a usual call left, would most likely be paid for and cut
 * short. One that has hardly waited is tried: its caller knows better how long the call may take.
 */
function throwIfTooLate(
  { waitedMs, leftMs }: { waitedMs: number; leftMs: number },
  { meanJobMs }: Pick<LoadTracker, 'meanJobMs'>,
): void {
  if (waitedMs > leftMs && leftMs < meanJobMs / 2)
    throw new Failure('overloaded', { retryAfterMs: Math.ceil(meanJobMs) });
}

async function callOnce(
  { job, chatJob, request }: Call,
  onReply: () => void,
  { provider, settings }: ChatJobDeps,
): Promise<ProviderReply> {
  const { now, signal: stop, deltas } = job;
  const { timeoutMs, firstTokenTimeoutMs, idleTimeoutMs } = settings;
  const stream = deltas && { firstDeltaBy: startOf(chatJob), firstTokenTimeoutMs, idleTimeoutMs };
  const call = new CallSignal({ timeoutMs, deadline: chatJob.deadline, now, stop, stream });
  const onDelta = (text: string) => {
    if (!deltas?.hasBegun) {
      onReply();
      call.beginStream();
    }
    deltas?.append(text);
  };
  const onActivity = () => call.recordActivity();
  try {
    return await provider.run({ ...request, signal: call.signal, onActivity }, deltas && onDelta);
  } finally {
    call.release();
  }
}
