import { errorCount, overSimulatorMs, type Series } from './results.js';
import type { Run } from './runs.js';
import { storeTitles } from './store.js';

/** What became of one aim. */
export interface AimResult {
  readonly aim: string;
  readonly verdict: 'met' | 'not met' | 'not measured';
  /** The numbers behind the verdict, in words for people. */
  readonly numbers: string;
}

const minRequestsPerSecond = 1500;
const maxAddedMs = 2;
const maxMemoryBytes = 400e6;

/** Compares with what the project wants to reach: throughput with Redis, the rest with every store that ran. */
export function compareWithAims(series: readonly Series[]): AimResult[] {
  const redis = series.find(({ store }) => store === 'redis');
  return [throughput(redis), ...series.flatMap((one) => [addedTime(one), manyInFlight(one)])];
}

function throughput(redis: Series | undefined): AimResult {
  const aim = `Redis: at least ${minRequestsPerSecond} requests/s at 128 connections`;
  const run = redis && find(redis, { latencyMs: 0, connections: 128 });
  if (run === undefined) return notMeasured(aim);
  const perSecond = run.load.answers / run.load.seconds;
  const numbers = `${perSecond.toFixed(0)} requests/s, ${errorCount(run.load.errors)} errors`;
  return { aim, verdict: verdict(perSecond >= minRequestsPerSecond), numbers };
}

function addedTime(series: Series): AimResult {
  const aim = `${storeTitles[series.store]}: p50 at most ${maxAddedMs} ms over the simulator's own at 1 connection`;
  const run = find(series, { latencyMs: 0, connections: 1 });
  const addedMs = run && overSimulatorMs(series, run);
  const p50Ms = run?.load.p50Ms;
  if (p50Ms === undefined || addedMs === undefined) return notMeasured(aim);
  const numbers = `${p50Ms.toFixed(2)} ms - ${(p50Ms - addedMs).toFixed(2)} ms = ${addedMs.toFixed(2)} ms`;
  return { aim, verdict: verdict(addedMs <= maxAddedMs), numbers };
}

function manyInFlight(series: Series): AimResult {
  const megabytes = maxMemoryBytes / 1e6;
  const aim = `${storeTitles[series.store]}: 1,000 in flight at 500 ms, no error, API and worker together below ${megabytes} MB`;
  const run = find(series, { latencyMs: 500, connections: 1000 });
  if (run === undefined) return notMeasured(aim);
  const errors = errorCount(run.load.errors);
  const { api, worker } = run.usage.parts;
  if (api === undefined || worker === undefined) return notMeasured(aim);
  const bytes = api.peakBytes + worker.peakBytes;
  const numbers = `${errors} errors, ${(bytes / 1e6).toFixed(0)} MB at their peaks, ${run.maxAtProvider} at the provider at once`;
  return { aim, verdict: verdict(errors === 0 && bytes < maxMemoryBytes), numbers };
}

function find({ runs }: Series, wanted: Pick<Run, 'latencyMs' | 'connections'>): Run | undefined {
  return runs.find(
    ({ target, latencyMs, connections }) =>
      target === 'chat' && latencyMs === wanted.latencyMs && connections === wanted.connections,
  );
}

/** Names how a comparison ended. */
export const verdict = (met: boolean): AimResult['verdict'] => (met ? 'met' : 'not met');

/** For an aim whose run did not take place. */
export const notMeasured = (aim: string): AimResult => ({
  aim,
  verdict: 'not measured',
  numbers: 'its run did not take place',
});
