import type { PoolBeat } from '../shared/messages.js';

/** What a worker told last, and for how much longer a model is held back or its breaker is open there, in milliseconds. */
export type LivePool = PoolBeat & { readonly heldMs: number; readonly openForMs: number };

/** Our own jobs that have not settled. */
export interface Outstanding {
  readonly waitedFor: number;
  readonly async: number;
}

/** A job that would be added now, and what this process has added before. */
interface Newcomer {
  readonly own: Outstanding;
  readonly isAsync: boolean;
}

/**
 * Time until a job added now is done: until a pool is held back no more, and the backlog before it has gone. Who
 * is held the longest may have the most room, so each hold is tried with the pools that take jobs by then.
 */
export function predictWaitMs(pools: LivePool[], newcomer: Newcomer): number {
  const waits = pools.map(({ heldMs }) => {
    const taking = pools.filter((pool) => pool.heldMs <= heldMs);
    return heldMs + predictBacklogMs(taking, newcomer);
  });
  return Math.min(...waits);
}

/** Too many callers make each who is admitted one at the edge of its deadline: an exact prediction would be too late for half. */
const caution = 1.1;

/**
 * None while there is room; else the time until enough of the jobs before a new one have left, and it has been done
 * itself, at the pools' mean pace: a job that is only begun before its deadline costs a call that helps nobody.
 */
function predictBacklogMs(beats: PoolBeat[], newcomer: Newcomer): number {
  const concurrency = sumOf(beats, ({ concurrency }) => concurrency);
  // A worker that has called nobody yet does not know how long a call takes.
  const paces = beats.map((beat) => beat.meanJobMs).filter((meanMs) => meanMs > 0);
  const meanJobMs = paces.reduce((total, meanMs) => total + meanMs, 0) / Math.max(1, paces.length);
  const ahead = countAhead(beats, newcomer, concurrency);
  return ahead < concurrency ? 0 : Math.round(((ahead + 1) / concurrency) * meanJobMs * caution);
}

/**
 * Jobs that are done before a new one: the beats tell of everybody's, up to a second late; our own are known exactly. Of the
 * asynchronous ones only those that are running are before a job that is waited for: all there is room for, at most.
 */
function countAhead(beats: PoolBeat[], { own, isAsync }: Newcomer, concurrency: number): number {
  const waiting = beats.map((beat) => beat.waiting + (isAsync ? (beat.waitingAsync ?? 0) : 0));
  const toldOf = Math.max(...waiting) + sumOf(beats, ({ inFlight }) => inFlight);
  const all = own.waitedFor + own.async;
  return Math.max(toldOf, isAsync ? all : Math.max(own.waitedFor, Math.min(all, concurrency)));
}

const sumOf = (beats: PoolBeat[], pick: (beat: PoolBeat) => number): number =>
  beats.reduce((total, beat) => total + pick(beat), 0);
