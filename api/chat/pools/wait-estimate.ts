import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { countAll, countUpTo, type ShareLevel, type WaitingByLevel } from '../../../shared/queue/priority.js';

/** What a worker told last, and for how much longer a model is held back or its breaker is open there, in milliseconds. */
export type LivePool = PoolHeartbeat & { readonly heldMs: number; readonly openForMs: number };

/** A job that would be added now, and what this process has added before and has not settled. */
interface NewJobPosition {
  readonly own: WaitingByLevel;
  readonly isAsync: boolean;
  readonly level: ShareLevel;
}

/**
 * Time until a job added now is done: until a pool is held back no more, and the backlog before it has gone. Who
 * is held the longest may have the most room, so each hold is tried with the pools that take jobs by then.
 */
export function estimateWaitMs(pools: LivePool[], newcomer: NewJobPosition): number {
  const waits = pools.map(({ heldMs }) => {
    const taking = pools.filter((pool) => pool.heldMs <= heldMs);
    return heldMs + estimateBacklogMs(taking, newcomer);
  });
  return Math.min(...waits);
}

/** Too many callers make each who is admitted one at the edge of its deadline: an exact prediction would be too late for half. */
const safetyFactor = 1.1;

/**
 * None while there is room; else the time until enough of the jobs before a new one have left, and it has been done
 * itself, at the pools' pace: a job that is only begun before its deadline costs a call that helps nobody.
 */
function estimateBacklogMs(heartbeats: PoolHeartbeat[], newcomer: NewJobPosition): number {
  const concurrency = sumOf(heartbeats, ({ concurrency }) => concurrency);
  const ahead = countAhead(heartbeats, newcomer, concurrency);
  if (ahead < concurrency) return 0;
  const jobsPerMs = paceOf(heartbeats);
  return jobsPerMs === 0 ? 0 : Math.round(((ahead + 1) / jobsPerMs) * safetyFactor);
}

/** Jobs a millisecond of all pools together; 0 while none knows how long a job takes. One that does not is taken for average. */
function paceOf(heartbeats: PoolHeartbeat[]): number {
  const knowing = heartbeats.filter((heartbeat) => usualMsOf(heartbeat) > 0);
  const pace = sumOf(knowing, (heartbeat) => heartbeat.concurrency / usualMsOf(heartbeat));
  const known = sumOf(knowing, ({ concurrency }) => concurrency);
  return known === 0 ? 0 : pace * (sumOf(heartbeats, ({ concurrency }) => concurrency) / known);
}

/** How long a job takes: a pool that has finished none knows at least how long its oldest one has been running. */
const usualMsOf = ({ meanJobMs, oldestJobMs = 0 }: PoolHeartbeat): number =>
  meanJobMs > 0 ? meanJobMs : oldestJobMs;

/**
 * Jobs that are done before a new one: the heartbeats tell of everybody's, up to a second late; our own are known exactly. Of
 * those that come after it only the running ones are before it: all there is room for, at most.
 */
function countAhead(heartbeats: PoolHeartbeat[], newcomer: NewJobPosition, concurrency: number): number {
  const { own } = newcomer;
  const waiting = heartbeats.map((heartbeat) => countBefore(waitingOf(heartbeat), newcomer));
  const toldOf = Math.max(...waiting) + sumOf(heartbeats, ({ inFlight }) => inFlight);
  const all = countAll(own.waitedFor) + countAll(own.async);
  return Math.max(toldOf, countBefore(own, newcomer), Math.min(all, concurrency));
}

/** Those of these jobs that are taken before the newcomer. */
function countBefore({ waitedFor, async }: WaitingByLevel, { isAsync, level }: NewJobPosition): number {
  return isAsync ? countAll(waitedFor) + countUpTo(async, level) : countUpTo(waitedFor, level);
}

/** A worker of the release before this one does not tell of levels: all its jobs count. */
const waitingOf = ({
  waiting,
  waitingAsync,
  waitingByLevel,
  waitingAsyncByLevel,
}: PoolHeartbeat): WaitingByLevel => ({
  waitedFor: waitingByLevel ?? [waiting],
  async: waitingAsyncByLevel ?? [waitingAsync ?? 0],
});

const sumOf = (heartbeats: PoolHeartbeat[], pick: (heartbeat: PoolHeartbeat) => number): number =>
  heartbeats.reduce((total, heartbeat) => total + pick(heartbeat), 0);
