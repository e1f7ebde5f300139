/** How busy a pool is. */
export interface LoadTracker {
  readonly inFlight: number;
  /** Age of the oldest running job, in milliseconds; undefined when none is running. */
  readonly oldestJobMs: number | undefined;
  /** Moving mean of the time a call takes that gives an answer, in milliseconds; 0 before the first. */
  readonly meanJobMs: number;
  /** Counts the job as in flight while it runs. */
  track<T>(job: () => Promise<T>): Promise<T>;
  /**
   * Records how long a call took that gave an answer, or was cut at its deadline: that one would have taken longer, and were it
   * counted as short, a pool with a long backlog would seem fast and be given more. Calls that failed say nothing about the pace.
   */
  recordCall(tookMs: number, options?: { timedOut: boolean }): void;
}

interface LoadOptions {
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
  /** Called when a job is in flight no more. */
  onEnd?: () => unknown;
}

/** The mean follows the last few dozen calls. */
const weight = 1 / 20;

export function createLoadTracker({
  onEnd = () => {},
  now = () => performance.now(),
}: LoadOptions = {}): LoadTracker {
  /** When the running jobs began, oldest first. */
  const running = new Map<symbol, number>();
  let meanJobMs = 0;
  return {
    get inFlight() {
      return running.size;
    },
    get oldestJobMs() {
      const [oldest] = running.values();
      return oldest === undefined ? undefined : Math.round(now() - oldest);
    },
    get meanJobMs() {
      return meanJobMs;
    },
    track: async (job) => {
      const key = Symbol('job');
      running.set(key, now());
      try {
        return await job();
      } finally {
        running.delete(key);
        onEnd();
      }
    },
    recordCall: (tookMs, { timedOut } = { timedOut: false }) => {
      if (timedOut && tookMs <= meanJobMs) return;
      meanJobMs = meanJobMs === 0 ? tookMs : meanJobMs + (tookMs - meanJobMs) * weight;
    },
  };
}
