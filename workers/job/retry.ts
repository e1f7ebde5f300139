import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../../shared/failures.js';
import { hints, type ModelParameters } from '../../shared/protocol/model-parameters.js';
import type { Gate } from '../gate/gate.js';
import { longestPatienceMs, patienceFor } from '../gate/waiting-jobs.js';
import { callErrorOf, refusesCredentials } from '../providers/error-classification.js';
import type { ProviderReply } from '../providers/provider.js';
import type { AddedPart, Refusal } from '../providers/refusals.js';
import { type Call, type Next, retryOf, wholeRetryOf } from './call.js';
import type { ModelNotes } from './model-notes.js';
import { narrow, type Omitted } from './model-request.js';

const minPauseMs = 100;
const maxPauseMs = 400;
/** In a pause that is longer than this another job can have the slot. */
const longPauseMs = 500;
/** Less time than this to the deadline is not worth another call. */
const minTimeLeftMs = 250;

/**
 * The one retry layer: at most one more attempt, when the failure may pass, the pause fits before the deadline, and the
 * budget allows it. The pause is a jittered fraction of a second, but never shorter than the provider's `Retry-After`
 * or the model's cooldown. A call that timed out is not retried: it has already cost the most a call can. Nor is one
 * that was not made, because the gate refused it.
 *
 * A call that is refused for a part that the answer does not need is made once more without that part, and one that is
 * refused although it was made without what its model had refused before, as it was asked for. This happens at once,
 * does not need the budget, and also happens at the providers of a fallback. Only a repetition that is answered shows
 * that the part was refused: then it is remembered. A repetition without a part that an adapter adds, or without
 * signatures, does not use up the one retry: the caller has not asked for them.
 *
 * With a fallback the pause is bounded by `patienceFor`, and a retry that takes as long as the first attempt must leave
 * half of the remaining time for the next provider.
 */
export async function withOneRetry(call: Call, deps: RetryDeps, next: Next<Call>) {
  deps.notes.find(call.model)?.budget.earn(call.user);
  return attempt(call, deps, next);
}

async function attempt(call: Call, deps: RetryDeps, next: Next<Call>): Promise<ProviderReply> {
  const { job, model, user, request, progress } = call;
  const { notes } = deps;
  const startedAt = job.now();
  try {
    return await next(call);
  } catch (error) {
    const { sent } = progress;
    if (sent === undefined) throw error;
    const refusal = callErrorOf(error)?.refusal;
    const omitted = omittedAfter(error, call);
    const isUndone = !omitted && isRejected(error) && isNarrowed(call);
    if (!omitted && !isUndone) await pause(error, call, { ...deps, tookMs: job.now() - startedAt });
    const retry = isUndone ? wholeRetryOf(call) : retryOf(call, omitted);
    const last: Next<Call> = (made) =>
      next(made).catch((failure) => {
        forgetKnown(failure, made, deps);
        throw lastError(failure, made, { error, omitted });
      });
    const second = await (isFree(omitted, refusal) ? attempt(retry, deps, next) : last(retry));
    if (omitted) notes.of(model).hints.recordRefusal(sent.request, refusal, user);
    if (isUndone) notes.find(model)?.hints.refute(request, sent.known, user);
    return second;
  }
}

/** The error of the last call, or of the first where that says more. */
function lastError(
  failure: Failure,
  last: Call,
  { error, omitted }: { error: unknown; omitted?: Omitted | undefined },
) {
  if (omittedAfter(failure, last)) return omitted ? passing(failure) : error;
  return !omitted && isRefused(failure) ? error : failure;
}

interface RetryDeps {
  gate: Pick<Gate, 'heldMs'>;
  notes: Pick<ModelNotes, 'find' | 'of'>;
  /** Waits so many milliseconds, or rejects when the signal aborts. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const sleepUntilStopped = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal });

/** A second refusal of what an answer does not need says nothing against asking again, nor against the fallback. */
const passing = ({ cause }: Failure): Failure => new Failure('provider_error', { cause });

/** Waits until the retry of a call that took this long may begin; throws its error when there is none. */
async function pause(
  error: unknown,
  call: Call,
  { gate, notes, sleep = sleepUntilStopped, tookMs }: RetryDeps & { tookMs: number },
): Promise<void> {
  const { stop, slot, model, user, job } = call;
  const ownPauseMs = pauseBeforeRetry(error, call);
  if (ownPauseMs === undefined) throw error;
  const startBy = latestRetry(tookMs, call);
  let pauseMs = Math.max(ownPauseMs, gate.heldMs(call));
  if (job.now() + pauseMs > startBy || !notes.of(model).budget.spend(user)) throw error;
  // Another call may make the cooldown longer meanwhile.
  for (; pauseMs > 0; pauseMs = gate.heldMs(call)) {
    if (job.now() + pauseMs > startBy) throw error;
    if (pauseMs > longPauseMs) slot.park();
    await sleep(pauseMs, stop).catch(() => stop.throwIfAborted());
  }
}

/** The parts that a call can do without, after the refusal of one; undefined if the caller has not sent that. */
function omittedAfter(error: unknown, { progress, request, chatJob }: Call): Omitted | undefined {
  const { sent, isShown } = progress;
  const refusal = callErrorOf(error)?.refusal;
  if (sent === undefined || isShown || refusal === undefined) return undefined;
  const omitted = omittedBy(refusal, sent.request.parameters, request.parameters);
  if (!omitted || !narrow(sent.request, omitted).isNarrower) return undefined;
  return (omitted.hints || refusal === 'laterSystem') && chatJob.isStrict ? undefined : omitted;
}

/** There is one repetition, and the next refusal might be of another hint: it is made without all of them. */
function omittedBy(refusal: Refusal, sent: ModelParameters = {}, given: ModelParameters = {}) {
  if (refusal === 'toolChoice') return undefined;
  if (isAdded(refusal)) return { [refusal]: true };
  if (refusal === 'effort')
    return sent.tools && sent.reasoningEffort !== 'none' ? { hints, reasoning: true } : undefined;
  const isSent = refusal.some((name) => given[name] !== undefined && sent[name] === given[name]);
  return isSent ? { hints } : undefined;
}

/** Whether a repetition does not use up the one retry. */
const isFree = (omitted: Omitted | undefined, refusal: Refusal | undefined): boolean =>
  omitted !== undefined && isAdded(refusal);

const isAdded = (refusal: Refusal | undefined): refusal is AddedPart | 'signatures' =>
  typeof refusal === 'string' && refusal !== 'effort' && refusal !== 'toolChoice';

/** Forgets the parts that the call was made without, if it failed by the provider's answer. */
function forgetKnown(error: unknown, call: Call, { notes }: RetryDeps): void {
  const { request, user, model, progress } = call;
  const isByAnswer = isRejected(error) || (error instanceof Failure && error.code === 'provider_error');
  if (isByAnswer && isNarrowed(call))
    notes.find(model)?.hints.forget(request, progress.sent?.known ?? {}, user);
}

/** Whether a call of which nothing was shown was made without parts that its model was known to refuse. */
const isNarrowed = ({ progress: { sent, isShown } }: Call): boolean =>
  !isShown &&
  Object.values(sent?.known ?? {}).some((part) => part === true || Boolean(part && part.size > 0));

const isRejected = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'provider_rejected' && !refusesCredentials(error);

/** The latest time at which the retry of a call that took this long may begin, in milliseconds since the epoch. */
function latestRetry(tookMs: number, { deadline, job, hasFallback }: Call): number {
  const now = job.now();
  const startBy = deadline - minTimeLeftMs;
  if (!hasFallback) return Math.min(startBy, now + longestPatienceMs);
  return Math.min(startBy, now + patienceFor(deadline - now), deadline - 2 * tookMs);
}

/** The first attempt may have opened the breaker: then its error says more than that the second was not made. */
const isRefused = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'provider_unavailable';

/** Undefined for a call that is not made once more. */
function pauseBeforeRetry(error: unknown, { progress: { isShown }, chatJob }: Call): number | undefined {
  // Later attempts are not retried: otherwise one chat could make twice as many calls as it has targets.
  if (isShown || (chatJob.attempt ?? 1) > 1) return undefined;
  if (!(error instanceof Failure) || !error.retryable) return undefined;
  if (error.code !== 'provider_error' && error.code !== 'provider_rate_limited') return undefined;
  const jitteredMs = minPauseMs + Math.random() * (maxPauseMs - minPauseMs);
  // With a `Retry-After` of 0, or a date in the past, all jobs would otherwise retry at once.
  return Math.max(jitteredMs, (error.facts.retryAfterMs ?? 0) + Math.random() * 100);
}
