/** Why a job ends that nobody waits for any more. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** Why a job ends whose lock could not be renewed: another worker has it now, or will have it. */
export class LockLost extends Error {
  override readonly name = 'LockLost';
}

/** The jobs that run in a pool, each with a signal of its own by which it is ended before its time. */
export interface ActiveJobs {
  /** Runs the job; its signal aborts with `Cancelled`, with `LockLost`, or with the reason given to `abortAll`. */
  run<T>(jobId: string, job: (stop: AbortSignal) => Promise<T>): Promise<T>;
  /** Ends those of these jobs that run, and any that starts within the next minute. */
  cancel(jobIds: readonly string[]): void;
  /** Ends those of these jobs that run: nothing may come of them here. One that starts again is another matter. */
  lose(jobIds: readonly string[]): void;
  /** Ends all, and whatever starts from now on. */
  abortAll(reason: Error): void;
}

interface RunningJobsOptions {
  /** How long cancelled jobs are remembered, in milliseconds. */
  rememberedMs?: number;
  now?: () => number;
}

/** However many are cancelled, no more than these are remembered: a megabyte or two. */
const maxRemembered = 10_000;

/**
 * Cancelled jobs are remembered for a minute: one may be on its way here from the queue when its cancel arrives, or be
 * taken over from a worker that died.
 */
export function createActiveJobs({
  rememberedMs = 60_000,
  now = Date.now,
}: RunningJobsOptions = {}): ActiveJobs {
  // A job whose lock was lost can run here twice.
  const running = new Set<{ jobId: string; ending: AbortController }>();
  /** When they were cancelled, oldest first. */
  const cancelled = new Map<string, number>();
  let over: Error | undefined;

  const end = (jobIds: ReadonlySet<string>, reason: Error) => {
    for (const { jobId, ending } of running) if (jobIds.has(jobId)) ending.abort(reason);
  };
  const forgetOld = () => {
    for (const [jobId, at] of cancelled) {
      if (cancelled.size <= maxRemembered && now() - at < rememberedMs) return;
      cancelled.delete(jobId);
    }
  };
  return {
    run: async (jobId, job) => {
      const ending = new AbortController();
      forgetOld();
      if (over !== undefined) ending.abort(over);
      else if (cancelled.has(jobId)) ending.abort(new Cancelled());
      const entry = { jobId, ending };
      running.add(entry);
      try {
        return await job(ending.signal);
      } finally {
        running.delete(entry);
      }
    },
    cancel: (jobIds) => {
      end(new Set(jobIds), new Cancelled());
      for (const jobId of jobIds) {
        cancelled.delete(jobId);
        cancelled.set(jobId, now());
      }
      forgetOld();
    },
    lose: (jobIds) => end(new Set(jobIds), new LockLost()),
    abortAll: (reason) => {
      over = reason;
      for (const { ending } of running) ending.abort(reason);
    },
  };
}
