import type { PoolConfig } from '../../shared/config/pool-config.js';
import { Failure } from '../../shared/failures.js';
import type { Attempt } from '../../shared/protocol/attempts.js';
import type { ChatJob, JobTexts } from '../../shared/protocol/messages.js';
import { givenUpOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import { Cancelled } from '../gate/gated-call.js';
import { type Call, firstCall, type Next, startOf } from './call.js';
import { toModelRequest } from './model-request.js';
import type { NextAttempts } from './next-attempt.js';
import { conclude, type JobEnd, toEndedAttempt, toFailedOutcome, toOutcome } from './outcomes.js';
import type { RunningJob } from './running-job.js';
import type { StoredResults } from './stored-results.js';

export interface ChatJobDeps {
  settings: PoolConfig;
  /** How long the pool's jobs take, in milliseconds; undefined before the first answer. */
  times: { readonly meanMs: number | undefined };
  call: Next<Call>;
  /** Called with what a job failed with: the operators' way to see why. */
  onFailure: (error: Failure) => void;
  /** Reads the texts of a job that lie beside it; throws a retryable `internal` if they cannot be read. */
  readTexts: (job: Pick<RunningJob, 'chatId'>, chatJob: ChatJob) => Promise<JobTexts>;
  storedResults: Pick<StoredResults, 'find' | 'record'>;
  nextAttempts: Pick<NextAttempts, 'begin'>;
  isRestarted?: boolean;
  /** The attempt that follows it already, begun by a worker that died before this one had ended. */
  begunNext?: Attempt | undefined;
}

/**
 * Answers one conversation. In order:
 * 1. a stored chat that has ended already, here or elsewhere, keeps its outcome;
 * 2. a job that was cancelled, or that comes too late to be answered in time, makes no call;
 * 3. the model is the job's or the pool's, and has to be one that callers may name;
 * 4. the provider is called once the gate lets the call in, with one retry at most, never past the deadline, nor after
 *    the first delta of a stream;
 * 5. every end becomes an outcome;
 * 6. a failure that another provider may mend is passed on to the next of the fallback, unless a stream has begun;
 * 7. else the outcome of a stored chat is recorded, unless another one was recorded meanwhile, which then counts.
 *
 * Throws `NotBegun` for a job that goes back to its queue, and unexpected errors; neither is recorded as an outcome.
 */
export async function runChatJob(job: RunningJob, chatJob: ChatJob, deps: ChatJobDeps): Promise<JobEnd> {
  const recorded = await deps.storedResults.find(job, chatJob.deadline);
  if (recorded !== undefined) return { own: recorded, outcome: recorded };
  if (deps.begunNext) {
    // The job does not say why it was passed on.
    const own = { ...givenUpOutcome, ...job.timings };
    return { own, outcome: { ...own, next: deps.begunNext } };
  }
  if (deps.isRestarted) job.deltas?.announceRestart();
  const own = await answer(job, chatJob, deps);
  const ended = toEndedAttempt(own, chatJob);
  // A stream that has begun does not begin again elsewhere.
  if (own.kind === 'failed' && !job.deltas?.hasBegun) {
    const next = await deps.nextAttempts.begin(job, chatJob, ended);
    if (next) return { own, outcome: { ...own, next } };
  }
  const outcome = conclude(own, [...(chatJob.earlier ?? []), ended]);
  return { own, outcome: await deps.storedResults.record(job, outcome) };
}

async function answer(job: RunningJob, chatJob: ChatJob, deps: ChatJobDeps): Promise<Outcome> {
  const { deltas } = job;
  try {
    job.signal.throwIfAborted();
    const leftMs = startOf(chatJob) - job.now();
    if (leftMs <= 0) throw new Failure('timeout');
    // A stream only has to begin by then.
    if (deltas === undefined) throwIfTooLate(job.timings.queueMs, leftMs, deps.times);
    const texts = textsOf(chatJob) ?? (await deps.readTexts(job, chatJob));
    job.signal.throwIfAborted();
    const request = toModelRequest({ ...chatJob, ...texts }, deps.settings);
    const reply = await deps.call(firstCall({ job, chatJob, request, settings: deps.settings }));
    const askedModel = chatJob.earlier && request.model;
    const { ignored, changes } = job.progress ?? {};
    return toOutcome(reply, { ...job.timings, askedModel, ignored, changes, callId: deltas?.callId });
  } catch (error) {
    if (error instanceof Cancelled) return { kind: 'cancelled', ...job.timings };
    if (!(error instanceof Failure)) throw error;
    deps.onFailure(error);
    return toFailedOutcome(error, job.timings);
  }
}

/** The texts of a job that lie in it. */
function textsOf({ turns, parameters, bodyText }: ChatJob): JobTexts | undefined {
  if (bodyText !== undefined) return { bodyText };
  return turns && { turns, parameters };
}

/**
 * A job that has waited for most of its time, and has less than half of a usual call left, would most likely be paid
 * for and cut short. One that has hardly waited is tried: its caller knows better how long the call may take.
 */
function throwIfTooLate(waitedMs: number, leftMs: number, { meanMs = 0 }: ChatJobDeps['times']): void {
  if (waitedMs > leftMs && leftMs < meanMs / 2)
    throw new Failure('overloaded', { retryAfterMs: Math.ceil(meanMs) });
}
