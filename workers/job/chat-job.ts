import type { PoolSettings } from '../../shared/config/pool-settings.js';
import { Failure } from '../../shared/failures.js';
import type { Attempt, EndedAttempt } from '../../shared/protocol/attempts.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { Provider, ProviderReply } from '../providers/provider.js';
import { Cancelled } from './active-jobs.js';
import type { Breaker } from './breaker.js';
import { isUnreachable } from './call-samples.js';
import { CallSignal } from './call-signal.js';
import type { Circuit } from './circuit.js';
import type { Circuits } from './circuits.js';
import type { DeltaStream } from './delta-publisher.js';
import { JobTimes } from './job-times.js';
import type { LoadTracker } from './load-tracker.js';
import { type ModelRequest, toModelRequest } from './model-request.js';
import type { NextAttempt } from './next-attempt.js';
import { conclude, toEndedAttempt, toFailedOutcome, toOutcome } from './outcomes.js';
import type { PoolMetrics } from './pool-metrics.js';
import { patienceFor, withOneRetry } from './retry.js';
import type { Slot } from './slots.js';
import type { StoredResult } from './stored-results.js';
import { type CallKind, NotBegun } from './waiting-jobs.js';

/** What a chat job works with; all but the last eight are shared by the jobs of a pool. */
export interface ChatJobDeps {
  provider: Provider;
  settings: PoolSettings;
  /** The breaker of what concerns the account, and so every model. */
  account: Pick<Breaker, 'state' | 'isProbing' | 'run'>;
  circuits: Pick<Circuits, 'of'>;
  load: Pick<LoadTracker, 'meanJobMs'>;
  metrics: Pick<PoolMetrics, 'recordBegun' | 'watchCall'>;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
  /** Parked while the job waits for its model. */
  slot: Slot;
  /** Whether the job may go back to the queue when the provider cannot be reached from here. */
  mayRequeue: () => boolean;
  /** Ends the job before its time: `Cancelled` when nobody waits for it any more, else the `Failure` that it ends with. */
  stop: AbortSignal;
  /** Called with what a job failed with: the operators' way to see why. */
  onFailure: (error: Failure) => void;
  storedResult?: StoredResult | undefined;
  /** Of a job whose reply is read as it is written. */
  deltas?: DeltaStream | undefined;
  nextAttempt?: Pick<NextAttempt, 'begin'> | undefined;
  isRestarted?: boolean;
  /** The attempt that follows it already, begun by a worker that died before this one had ended. */
  begunNext?: Attempt | undefined;
}

/** How a job ended. */
export interface JobEnd {
  readonly own: Outcome;
  /** What came of the chat, with all attempts; or that another attempt follows. */
  readonly outcome: Outcome;
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
 * `enqueuedAt` is in milliseconds since the epoch. Throws `NotBegun` for a job that goes back to its queue, and what nobody
 * expected; neither is recorded as an outcome.
 */
export async function runChatJob(job: ChatJob, enqueuedAt: number, deps: ChatJobDeps): Promise<JobEnd> {
  const recorded = await deps.storedResult?.find(job.deadline);
  if (recorded !== undefined) return { own: recorded, outcome: recorded };
  const times = new JobTimes(enqueuedAt, deps);
  if (deps.begunNext) return endBefore(deps.begunNext, times);
  if (deps.isRestarted) deps.deltas?.announceRestart();
  const own = await answer(job, times, deps);
  times.begin();
  const ended = toEndedAttempt(own, job);
  const followed = await passOn(own, ended, deps);
  if (followed) return { own, outcome: followed };
  const outcome = conclude(own, [...(job.earlier ?? []), ended]);
  return { own, outcome: deps.storedResult ? await deps.storedResult.record(outcome) : outcome };
}

/** The end of a job that has passed its chat on already; nobody knows any more why. */
function endBefore(next: Attempt, { timings }: JobTimes): JobEnd {
  const own: Outcome = { kind: 'failed', code: 'internal', retryable: true, ...timings };
  return { own, outcome: { ...own, next } };
}

/** The outcome of a job that another attempt follows; undefined when the chat ends with it. */
async function passOn(
  own: Outcome,
  ended: EndedAttempt,
  { deltas, nextAttempt }: ChatJobDeps,
): Promise<Outcome | undefined> {
  if (own.kind !== 'failed' || deltas?.hasBegun) return undefined;
  const next = await nextAttempt?.begin(ended);
  return next && { ...own, next };
}

async function answer(job: ChatJob, times: JobTimes, deps: ChatJobDeps): Promise<Outcome> {
  const { now = Date.now } = deps;
  try {
    const startBy = startOf(job);
    throwIfCancelled(startBy, { now, stop: deps.stop });
    // A stream only has to begin by then.
    if (deps.deltas === undefined)
      throwIfTooLate({ waitedMs: times.timings.queueMs, leftMs: startBy - now() }, deps.load);
    const request = toModelRequest(job, deps.settings);
    const circuit = deps.circuits.of(request.model);
    const attempt = (kind: CallKind) => attemptOnce(circuit, { job, request, kind, times }, deps);
    const { slot, stop, deltas } = deps;
    // Later attempts are not retried: otherwise one chat could make twice as many calls as it has targets.
    const mayRetry = () => (job.attempt ?? 1) === 1 && !deltas?.hasBegun;
    const limits = {
      budget: circuit.budget.shareOf(job.user),
      slot,
      cooldown: circuit.cooldown,
      deadline: startBy,
      now,
      signal: stop,
      mayRetry,
      hasFallback: deps.nextAttempt !== undefined,
    };
    const reply = await withOneRetry(attempt, limits);
    const asked = job.earlier && { askedModel: request.model };
    return toOutcome(reply, { ...times.timings, ...asked, ...(deltas && { callId: deltas.callId }) });
  } catch (error) {
    if (error instanceof Cancelled) return { kind: 'cancelled', ...times.timings };
    if (!(error instanceof Failure)) throw error;
    deps.onFailure(error);
    return toFailedOutcome(error, times.timings);
  }
}

/** When a call is of no use any more that has not begun to answer, in milliseconds since the epoch. */
const startOf = ({ deadline, firstDeltaBy = deadline }: ChatJob): number => Math.min(deadline, firstDeltaBy);

interface Call {
  job: ChatJob;
  request: ModelRequest;
  kind: CallKind;
  /** Begun when the wait for the model and for a slot is over. */
  times: JobTimes;
}

/**
 * A job whose call never reached the provider goes back to the queue, for a worker that reaches the provider; one with a fallback goes
 * on to that.
 */
async function attemptOnce(circuit: Circuit, attempt: Call, deps: ChatJobDeps): Promise<ProviderReply> {
  const { job, request, kind, times } = attempt;
  const { account, metrics, slot, stop, nextAttempt } = deps;
  const deadline = startOf(job);
  const patience = nextAttempt && { patienceMs: patienceFor(deadline - (deps.now ?? Date.now)()) };
  try {
    const caller = { deadline, stop, slot, user: job.user, ...patience };
    return await circuit.run(caller, kind, (onReply) => {
      if (!kind.isRetry && refusesCalls(account))
        throw nextAttempt ? new Failure('provider_unavailable') : new NotBegun();
      times.begin();
      const call = (onFirstDelta: () => void) => {
        const onBegun = () => {
          onReply();
          times.recordFirstDelta();
          onFirstDelta();
        };
        return callOnce(job, { ...request, onReply: onBegun }, deps);
      };
      return account.run(() => metrics.watchCall(call, kind));
    });
  } catch (error) {
    const mayGoBack = !kind.isRetry && !nextAttempt && !deps.deltas?.hasBegun;
    if (mayGoBack && isUnreachable(error) && deps.mayRequeue()) throw new NotBegun();
    throw error;
  }
}

const refusesCalls = ({ state, isProbing }: ChatJobDeps['account']): boolean =>
  state === 'open' || (state === 'half-open' && isProbing);

function throwIfCancelled(startBy: number, { now, stop }: { now: () => number; stop: AbortSignal }): void {
  stop.throwIfAborted();
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

type CallDeps = Pick<ChatJobDeps, 'provider' | 'settings' | 'now' | 'stop' | 'deltas'>;

async function callOnce(
  job: ChatJob,
  { onReply, ...request }: ModelRequest & { onReply: () => void },
  deps: CallDeps,
): Promise<ProviderReply> {
  const { provider, settings, now, stop, deltas } = deps;
  const { timeoutMs, firstTokenTimeoutMs, idleTimeoutMs } = settings;
  const stream = deltas && { firstDeltaBy: startOf(job), firstTokenTimeoutMs, idleTimeoutMs };
  const call = new CallSignal({ timeoutMs, deadline: job.deadline, now, stop, stream });
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
