import type { ConcurrencySuggestion } from '../contracts/fleet-contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';

type Stats = NonNullable<PoolHeartbeat['service']>;

/** Fewer say nothing of how many there will be. */
const minJobs = 30;
/** Five minutes, of which the oldest ten seconds may be forgotten: a load that has just begun says too little. */
const minOverMs = 290_000;
/** Arrivals come in bursts: at the mean itself a queue would grow without end. */
const headroom = 1.3;
/** A valid setting, for every heartbeat. */
const maxConcurrency = 1_000_000;

/**
 * The concurrency that a provider's live workers need by Little's law. Undefined while too few jobs have ended, in the
 * first five minutes, and where more jobs are in flight than it would allow.
 */
export function suggestConcurrency(heartbeats: readonly PoolHeartbeat[]): ConcurrencySuggestion | undefined {
  const all = heartbeats.flatMap(({ service }) => service ?? []);
  const sum = (pick: (stats: Stats) => number) => all.reduce((total, stats) => total + pick(stats), 0);
  const jobs = sum(({ count }) => count);
  const overMs = Math.max(0, ...all.map((stats) => stats.overMs));
  if (jobs < minJobs || overMs < minOverMs) return undefined;
  const mean = (pick: (stats: Stats) => number) => sum((stats) => stats.count * pick(stats)) / jobs;
  const meanMs = mean((stats) => stats.meanMs);
  const endedPerSecond = sum(({ count, overMs }) => count / overMs) * 1000;
  const arrivalsPerSecond = Math.max(0, endedPerSecond + growthPerSecond(heartbeats));
  const wanted = Math.ceil(arrivalsPerSecond * (meanMs / 1000) * headroom);
  const concurrency = Math.max(1, Math.min(wanted, maxConcurrency));
  const perWorker = Math.ceil(concurrency / heartbeats.length);
  if (heartbeats.some(({ inFlight }) => inFlight > perWorker)) return undefined;
  return {
    concurrency,
    perWorker,
    arrivalsPerSecond: Number(arrivalsPerSecond.toPrecision(3)),
    meanMs: Math.round(meanMs),
    p50Ms: Math.round(mean(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...all.map(({ p99Ms }) => p99Ms)),
    jobs,
    overMs,
  };
}

/** The growth of the queue in a second, by the worker that has run longest: all see the same queue. */
function growthPerSecond(heartbeats: readonly PoolHeartbeat[]): number {
  const [longest] = heartbeats.toSorted((a, b) => (b.service?.overMs ?? 0) - (a.service?.overMs ?? 0));
  const { waitingBefore, overMs = 1 } = longest?.service ?? {};
  if (longest === undefined || waitingBefore === undefined) return 0;
  const waiting = longest.waiting + (longest.waitingAsync ?? 0);
  return ((waiting - waitingBefore) / overMs) * 1000;
}
