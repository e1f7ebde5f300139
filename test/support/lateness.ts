import { monitorEventLoopDelay } from 'node:perf_hooks';

/** The value that this share of the values (0.99: 99 of 100) does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}

const resolutionMs = 5;
/** The usual delay of an idle process, by garbage collection. */
const usualLagMs = 25;
/** A request passes the caller, the API, the store and the worker, each of which can be delayed like this process. */
const processesInARow = 4;

/**
 * Runs the work and returns, beside its result, the allowance for times that were measured meanwhile, in milliseconds:
 * zero, unless the machine was too busy to run timers on time.
 */
export async function withLag<T>(work: () => Promise<T>): Promise<{ result: T; lagMs: number }> {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  try {
    const result = await work();
    const worstMs = delays.max / 1e6;
    return { result, lagMs: processesInARow * Math.max(0, worstMs - resolutionMs - usualLagMs) };
  } finally {
    delays.disable();
  }
}

interface Stall {
  readonly at: number;
  readonly ms: number;
}

/** Watches for timers that are late, until `stop`, to say what a single request owes to this process. */
export function watchLag(): {
  allowanceFor(request: { tookMs: number; endedAt: number }): number;
  stop(): void;
} {
  const stalls: Stall[] = [];
  let lastAt = performance.now();
  const timer = setInterval(() => {
    const at = performance.now();
    const ms = at - lastAt - watchEveryMs;
    if (ms > usualLagMs) stalls.push({ at, ms });
    lastAt = at;
  }, watchEveryMs);
  return {
    allowanceFor: ({ tookMs, endedAt }) => {
      const within = stalls.filter(({ at, ms }) => at > endedAt - tookMs && at - ms < endedAt);
      return processesInARow * Math.max(0, ...within.map(({ ms }) => ms));
    },
    stop: () => clearInterval(timer),
  };
}

const watchEveryMs = 20;
