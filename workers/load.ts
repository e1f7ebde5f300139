/** How busy a pool is. */
export interface Load {
  readonly inFlight: number;
  /** Moving mean of the time a call takes, in milliseconds; 0 before the first. */
  readonly meanJobMs: number;
  /** Counts the job as in flight while it runs. */
  track<T>(job: () => Promise<T>): Promise<T>;
  /**
   * Takes note of how long a call took; jobs that made none say nothing about the pace. One that was cut at its deadline
   * would have taken longer: were it counted as short, a pool with a long backlog would seem fast and be given more.
   */
  noteCall(tookMs: number, options?: { wasCut: boolean }): void;
}

interface LoadOptions {
  /** Called when a job is in flight no more. */
  onEnd?: () => unknown;
}

/** The mean follows the last few dozen calls. */
const weight = 1 / 20;

export function createLoad({ onEnd = () => {} }: LoadOptions = {}): Load {
  let inFlight = 0;
  let meanJobMs = 0;
  return {
    get inFlight() {
      return inFlight;
    },
    get meanJobMs() {
      return meanJobMs;
    },
    track: async (job) => {
      inFlight += 1;
      try {
        return await job();
      } finally {
        inFlight -= 1;
        onEnd();
      }
    },
    noteCall: (tookMs, { wasCut } = { wasCut: false }) => {
      if (wasCut && tookMs <= meanJobMs) return;
      meanJobMs = meanJobMs === 0 ? tookMs : meanJobMs + (tookMs - meanJobMs) * weight;
    },
  };
}
