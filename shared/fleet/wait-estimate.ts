import type { PoolHeartbeat } from '../protocol/messages.js';
import type { PoolOverrides } from '../protocol/settings.js';
import {
  countAll,
  countAllWaiting,
  countUpTo,
  type ShareLevel,
  type WaitingByLevel,
} from '../queue/add-attempt.js';

/** The limits of all pools of a provider together. */
export type QueueLimits = Pick<PoolOverrides, 'globalConcurrency' | 'rate'>;

/** A worker's last heartbeat, and how long it still holds back or refuses a user's calls of a model, in ms. */
export type LivePool = PoolHeartbeat & { readonly heldMs: number; readonly openForMs: number };

/** Where a job that is added now would stand, with `own`, the outstanding jobs of this process. */
export interface NewJobPosition {
  readonly own: WaitingByLevel;
  readonly isAsync: boolean;
  readonly level: ShareLevel;
  /** Whether it only has to begin in time, because its reply is read as it is written. */
  readonly isStream?: boolean;
}

/**
 * Milliseconds until a job that is added now is done. The pool that is held back longest may have the most room, so
 * each hold is tried with the pools that take jobs by then.
 */
export function estimateWaitMs(
  pools: LivePool[],
  newcomer: NewJobPosition,
  limits: QueueLimits = {},
): number {
  const waits = pools.map(({ heldMs }) => {
    const taking = pools.filter((pool) => pool.heldMs <= heldMs);
    return heldMs + estimateBacklogMs(taking, newcomer, limits);
  });
  return Math.min(...waits);
}

/** Under overload every admitted job ends close to its deadline: with an exact estimate half would be too late. */
const safetyFactor = 1.1;

/**
 * Zero while a slot is free; otherwise the time to finish the backlog and the new job at the current throughput. A
 * job that only starts before its deadline costs a call without a reply, unless it is a stream. With a rate
 * it is at least the time in which the jobs before it may begin, after the window that is used up.
 */
function estimateBacklogMs(
  heartbeats: PoolHeartbeat[],
  newcomer: NewJobPosition,
  { globalConcurrency = Infinity, rate }: QueueLimits,
): number {
  const places = sumOf(heartbeats, ({ concurrency }) => concurrency);
  const concurrency = Math.min(places, globalConcurrency);
  const ahead = countAhead(heartbeats, newcomer, concurrency);
  const jobsPerMs = paceOf(heartbeats) * (concurrency / places);
  const queued = Math.max(0, ahead - sumOf(heartbeats, ({ inFlight }) => inFlight));
  const leftMs = Math.max(...heartbeats.map(({ rateLeftMs = 0 }) => rateLeftMs));
  const windows = queued / (rate?.max ?? Infinity);
  const beginMs = leftMs + (leftMs > 0 ? Math.floor(windows) : windows) * (rate?.durationMs ?? 0);
  const lastJobs = newcomer.isStream ? 0 : concurrency;
  const rateMs = beginMs > 0 && jobsPerMs > 0 ? beginMs + lastJobs / jobsPerMs : beginMs;
  const jobsToWaitFor = newcomer.isStream ? ahead - concurrency + 1 : ahead + 1;
  const backlogMs = ahead < concurrency || jobsPerMs === 0 ? 0 : jobsToWaitFor / jobsPerMs;
  return Math.round(Math.max(backlogMs, rateMs) * safetyFactor);
}

/** Jobs per millisecond of all pools; 0 while no pool knows its job time. Those that do not count as average. */
function paceOf(heartbeats: PoolHeartbeat[]): number {
  const measured = heartbeats.filter((heartbeat) => jobMsOf(heartbeat) > 0);
  const pace = sumOf(measured, (heartbeat) => heartbeat.concurrency / jobMsOf(heartbeat));
  const known = sumOf(measured, ({ concurrency }) => concurrency);
  return known === 0 ? 0 : pace * (sumOf(heartbeats, ({ concurrency }) => concurrency) / known);
}

/** How long a job takes; a pool that has finished none knows how long its oldest one has been running. */
const jobMsOf = ({ meanJobMs, oldestJobMs = 0 }: PoolHeartbeat): number =>
  meanJobMs > 0 ? meanJobMs : oldestJobMs;

/**
 * Jobs that are done before a new one. Heartbeats count all jobs, up to a second late; ours are known exactly. Of
 * the jobs with a lower priority only those that run are before it, which are at most as many as there is room for.
 */
function countAhead(heartbeats: PoolHeartbeat[], newcomer: NewJobPosition, concurrency: number): number {
  const { own } = newcomer;
  const waiting = heartbeats.map((heartbeat) => countBefore(waitingOf(heartbeat), newcomer));
  const reported = Math.max(...waiting) + sumOf(heartbeats, ({ inFlight }) => inFlight);
  const all = countAllWaiting(own);
  return Math.max(reported, countBefore(own, newcomer), Math.min(all, concurrency));
}

function countBefore({ waitedFor, async }: WaitingByLevel, { isAsync, level }: NewJobPosition): number {
  return isAsync ? countAll(waitedFor) + countUpTo(async, level) : countUpTo(waitedFor, level);
}

/** Without levels, all jobs have the first. */
const waitingOf = (heartbeat: PoolHeartbeat): WaitingByLevel => ({
  waitedFor: heartbeat.waitingByLevel ?? [heartbeat.waiting],
  async: heartbeat.waitingAsyncByLevel ?? [heartbeat.waitingAsync ?? 0],
});

const sumOf = (heartbeats: PoolHeartbeat[], pick: (heartbeat: PoolHeartbeat) => number): number =>
  heartbeats.reduce((total, heartbeat) => total + pick(heartbeat), 0);
