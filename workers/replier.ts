import type { Log } from '../shared/log.js';
import type { Reply } from '../shared/messages.js';
import { topics } from '../shared/messages.js';
import { encodeOutcome } from '../shared/outcome.js';
import type { Telegraph } from '../shared/relay.js';

/** Tells the API process that waits for a job how it ended; the job's record says the same to whoever missed it. */
export interface Replier {
  /** `outcome` as `encodeOutcome` writes it. */
  settled(job: AnsweredJob, outcome: string): void;
  /** For a job that ended in an unexpected error, or was given up. */
  broke(job: AnsweredJob | undefined, error: Error): void;
  /** Resolves when everything told so far is on its way. */
  flush(): Promise<void>;
}

/** A job, as far as telling of it goes. */
interface AnsweredJob {
  id?: string | undefined;
  data: { replyTo: string };
}

/** Longer outcomes are left to the job's record: the relay refuses messages over 512 KiB, escapes and all. */
const longestTold = 80_000;

export function createReplier({ telegraph, log }: { telegraph: Telegraph; log: Log }): Replier {
  const pending = new Set<Promise<void>>();
  const tell = (job: AnsweredJob, outcome: string) => {
    const jobId = job.id ?? '';
    const reply: Reply = { v: 1, jobId, ...(outcome.length > longestTold ? {} : { outcome }) };
    const told = telegraph
      .publish(topics.reply(job.data.replyTo), reply)
      .catch((err) => log.debug({ err, jobId }, 'reply not told'))
      .finally(() => pending.delete(told));
    pending.add(told);
  };
  return {
    settled: tell,
    broke: (job, err) => {
      log.error({ err, jobId: job?.id }, 'job broke');
      if (job)
        tell(
          job,
          encodeOutcome({ kind: 'failed', code: 'internal', retryable: false, queueMs: 0, providerMs: 0 }),
        );
    },
    flush: async () => {
      await Promise.all(pending);
    },
  };
}
