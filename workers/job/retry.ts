import { LRUCache } from 'lru-cache';
import { Failure } from '../../shared/failures.js';
import { hints, type ModelParameters } from '../../shared/models/model-parameters.js';
import { Tally } from '../../shared/runtime/semaphore.js';
import { callErrorOf, refusesCredentials } from '../providers/errors/error-classification.js';
import type { Refusal } from '../providers/errors/refusals.js';
import type { ProviderReply } from '../providers/provider.js';
import { type Call, longestPatienceMs, type Next, patienceFor, retryOf } from './call.js';
import { keyOf, mayOmit, narrow, type Omittable } from './model-request.js';
import type { RefusedParts } from './refused-parts.js';

const minPauseMs = 100;
const maxPauseMs = 400;
/** Less time than this to the deadline is not worth another call. */
export const minTimeLeftMs = 250;

export interface RetryDeps {
  refused: Pick<RefusedParts, 'has' | 'add' | 'forget'>;
  budget: Pick<RetryBudget, 'earn' | 'spend'>;
}

interface FailedCallDeps extends RetryDeps {
  /** How long the call took, in milliseconds. */
  tookMs: number;
}

/**
 * Makes a call once more when the first one fails: without a part that was refused, as it was asked for if it was made
 * without parts refused before, or after a pause if the failure may pass. The first two happen at once, need no budget,
 * and also at the providers of a fallback. Parts that adapters add, and signatures, are left out one after the other,
 * beside that one call more: the caller has not asked for them. Once there is a reply, what was left out is remembered,
 * and what was sent again is forgotten.
 *
 * The pause is a jittered fraction of a second, but never shorter than the provider's `Retry-After`; it fits before the
 * deadline, and the budget allows it. The gate waits for its end; if it refuses the retry, the first call's failure
 * says more. A call that timed out is not retried: it has already cost the most a call can. Nor is one that was not
 * made. With a fallback the wait is bounded by `patienceFor`, and a retry that takes as long as the first call must
 * leave half of the time that is left.
 */
export async function withOneRetry(first: Call, deps: RetryDeps, next: Next<Call>): Promise<ProviderReply> {
  const { job } = first;
  deps.budget.earn(first.model, first.user);
  for (let made: MadeCall = { call: first, learned: [], stale: [] }; ; ) {
    const startedAt = job.now();
    try {
      const reply = await next(made.call);
      deps.refused.forget(first, made.stale);
      deps.refused.add(first, made.learned);
      return reply;
    } catch (error) {
      made = nextAfter(error, made, { ...deps, tookMs: job.now() - startedAt });
    }
  }
}

interface MadeCall {
  readonly call: Call;
  /** The keys, in the memory of refused parts, of the parts that it is made without. */
  readonly learned: readonly string[];
  /** The keys of the parts that it is made with again, since the call before was refused without them. */
  readonly stale: readonly string[];
  /** How the call before it ended, if it is the last one. */
  readonly before?: { readonly error: unknown; readonly wasRefused: boolean } | undefined;
}

/** The call to make after one has failed; throws the failure that says most when there is none. */
function nextAfter(error: unknown, { call, learned, before }: MadeCall, deps: FailedCallDeps): MadeCall {
  const refusal = readRefusal(error, call);
  if (refusal?.isFree) return { ...againWithout(refusal, call, learned), before };
  const known = knownIn(call);
  // The second call fails, too: the omission may be why.
  if (before && isFailure(error)) deps.refused.forget(call, known);
  if (before) throw mostTelling(error, call, { ...before, isRefusal: refusal !== undefined });
  if (refusal) return { ...againWithout(refusal, call, learned), before: { error, wasRefused: true } };
  const isStale = known.length > 0 && isRejected(error) && !namesPart(error, call);
  const again = isStale
    ? ({ kind: 'repetition', isWhole: true } as const)
    : ({ kind: 'retry', ...pauseAfter(error, call, deps) } as const);
  const stale = isStale ? known : [];
  return { call: retryOf(call, again), learned, stale, before: { error, wasRefused: false } };
}

const againWithout = ({ omitted, key }: RefusedCall, call: Call, learned: readonly string[]) => ({
  call: retryOf(call, { kind: 'repetition', omitted }),
  learned: key === undefined ? learned : [...learned, key],
  stale: [],
});

/** The error of the last call, or of the one before where that says more. */
function mostTelling(
  last: unknown,
  { progress, stop }: Call,
  { error, wasRefused, isRefusal }: { error: unknown; wasRefused: boolean; isRefusal: boolean },
): unknown {
  // A second refusal of optional parts becomes retryable, so that the fallback is asked.
  if (isRefusal)
    return wasRefused ? new Failure('provider_error', { cause: (last as Failure).cause }) : error;
  // The call before may have opened the breaker, or the wait was too long.
  const isUnmade = last instanceof Failure && progress.sent === undefined && !stop.aborted;
  return isUnmade && !wasRefused ? error : last;
}

interface RefusedCall {
  /** The parts that the next call is made without. */
  readonly omitted: readonly Omittable[];
  /** The key of the refused part in memory; undefined for one that the model may take elsewhere. */
  readonly key?: string | undefined;
  /** Whether the next call does not use up the one call more. */
  readonly isFree: boolean;
}

/** Finds the refused parts that a call can do without; undefined if there are none, or its caller needs them. */
function readRefusal(error: unknown, { progress, request, chatJob }: Call): RefusedCall | undefined {
  const { sent: { request: sent } = {}, isShown } = progress;
  const refusal = callErrorOf(error)?.refusal;
  if (sent === undefined || refusal === undefined || isShown) return undefined;
  const parts = partsOf(refusal, sent.parameters, request.parameters);
  const isFree = typeof refusal === 'string' && refusal !== 'effort';
  // The next refusal might be of another hint, and there is one call more: it is made without all of them.
  const omitted = isFree ? parts : [...hints, ...parts];
  if (parts.length === 0 || !narrow(sent, new Set(omitted)).isNarrower) return undefined;
  if (!omitted.every((part) => mayOmit(part, chatJob))) return undefined;
  // The model may take each of several alone, and the signatures of other replies.
  const [part] = parts.length === 1 ? parts : [];
  return { omitted, key: part && part !== 'signatures' ? keyOf(part, sent) : undefined, isFree };
}

/** The refused parts of the request that was sent, but for what only the caller can mend. */
function partsOf(refusal: Refusal, sent: ModelParameters = {}, given: ModelParameters = {}): Omittable[] {
  if (refusal === 'toolChoice') return [];
  if (refusal === 'effort') return sent.tools && sent.reasoningEffort !== 'none' ? ['reasoning'] : [];
  if (typeof refusal === 'string') return [refusal];
  return refusal.filter((name) => given[name] !== undefined && sent[name] === given[name]);
}

/** The keys of the remembered parts that the call was made without; none once something was shown of it. */
const knownIn = ({ progress: { sent, isShown }, request }: Call): string[] =>
  isShown || sent === undefined ? [] : sent.known.map((part) => keyOf(part, request));

/** Whether a refusal is of a part that was sent. */
function namesPart(error: unknown, { progress: { sent }, request }: Call): boolean {
  const refusal = callErrorOf(error)?.refusal;
  if (refusal === undefined || sent === undefined) return false;
  return refusal === 'toolChoice' || partsOf(refusal, sent.request.parameters, request.parameters).length > 0;
}

const isFailure = (error: unknown): boolean => error instanceof Failure && error.code === 'provider_error';

const isRejected = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'provider_rejected' && !refusesCredentials(error);

/** How the retry of a call that took this long waits; throws its error when there is none. */
function pauseAfter(
  error: unknown,
  call: Call,
  { budget, tookMs }: FailedCallDeps,
): Pick<Call, 'pauseMs' | 'patienceMs'> {
  const pauseMs = pauseBeforeRetry(error, call);
  if (pauseMs === undefined) throw error;
  const patienceMs = latestRetry(tookMs, call) - call.job.now();
  if (pauseMs > patienceMs || !budget.spend(call.model, call.user)) throw error;
  return { pauseMs, patienceMs };
}

/** The latest time at which the retry of a call that took this long may begin, in milliseconds since the epoch. */
function latestRetry(tookMs: number, { deadline, job, hasFallback }: Call): number {
  const now = job.now();
  const startBy = deadline - minTimeLeftMs;
  if (!hasFallback) return Math.min(startBy, now + longestPatienceMs);
  return Math.min(startBy, now + patienceFor(deadline - now), deadline - 2 * tookMs);
}

/** Undefined for a call that is not made once more. */
function pauseBeforeRetry(error: unknown, { progress, chatJob }: Call): number | undefined {
  // Later attempts are not retried: otherwise one chat could make twice as many calls as it has targets.
  if (progress.sent === undefined || progress.isShown || (chatJob.attempt ?? 1) > 1) return undefined;
  if (!(error instanceof Failure) || !error.retryable) return undefined;
  if (error.code !== 'provider_error' && error.code !== 'provider_rate_limited') return undefined;
  const jitteredMs = minPauseMs + Math.random() * (maxPauseMs - minPauseMs);
  // With a `Retry-After` of 0, or a date in the past, all jobs would otherwise retry at once.
  return Math.max(jitteredMs, (error.facts.retryAfterMs ?? 0) + Math.random() * 100);
}

const attemptsPerRetry = 10;
const maxSaved = 20 * attemptsPerRetry;
/** A model that was retried so many others ago begins with a whole budget again. */
const maxModels = 200;

/**
 * Keeps the retries of each model to a share of its traffic, so that a failing model does not get twice the calls of a
 * healthy one: one retry for every ten first attempts. It starts with 20, and saves at most 20. No user may spend more
 * than is then left for the others, so one user alone gets half. All who have no name count as one.
 */
export class RetryBudget {
  /** Budgets of models that a retry was made at: names that callers make up take no room. */
  readonly #models = new LRUCache<string, { earned: number; spent: Tally }>({ max: maxModels });

  /** To be called once for every first attempt. */
  earn(model: string, user = ''): void {
    const budget = this.#models.get(model);
    if (budget === undefined) return;
    budget.earned = Math.min(maxSaved, budget.earned + 1);
    if (budget.earned === maxSaved) budget.spent = new Tally();
    else if (budget.spent.of(user) > 0) budget.spent.add(user, -1);
  }

  /** Takes one retry out of the budget; false when there is none for this user. */
  spend(model: string, user = ''): boolean {
    const budget = this.#models.get(model) ?? { earned: maxSaved, spent: new Tally() };
    const left = budget.earned - attemptsPerRetry;
    if (left < budget.spent.of(user) + attemptsPerRetry) return false;
    budget.earned = left;
    budget.spent.add(user, attemptsPerRetry);
    this.#models.set(model, budget);
    return true;
  }
}
