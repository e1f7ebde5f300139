import { monitorEventLoopDelay } from 'node:perf_hooks';

/** The value that this share of the values (0.99: 99 of 100) does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}

const resolutionMs = 5;
/** This much a process with nothing to wait for is late itself: its collection of garbage. */
const usualLagMs = 25;
/** A request passes the caller, the API, the store and the worker, each of which can be held up like this process. */
const processesInARow = 4;

/**
 * Runs the work and gives, beside its result, what has to be allowed for in times that were measured meanwhile, in
 * milliseconds: zero, unless the machine had too much to do to run everybody's timers in time.
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
