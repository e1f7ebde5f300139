/** How busy a pool is. */
export interface Load {
  readonly inFlight: number;
  /** Moving mean of the time one job takes, in milliseconds; 0 before the first. */
  readonly meanJobMs: number;
  /** Runs the job and takes note of it. */
  track<T>(job: () => Promise<T>): Promise<T>;
}

/** The mean follows the last few dozen jobs. */
const weight = 1 / 20;

export function createLoad(): Load {
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
      const startedAt = performance.now();
      inFlight += 1;
      try {
        return await job();
      } finally {
        inFlight -= 1;
        const tookMs = performance.now() - startedAt;
        meanJobMs = meanJobMs === 0 ? tookMs : meanJobMs + (tookMs - meanJobMs) * weight;
      }
    },
  };
}
