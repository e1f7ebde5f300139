import type { Log } from '../shared/log.js';
import { type Reply, topics } from '../shared/messages.js';
import { brokenOutcome, encodeOutcome } from '../shared/outcome.js';
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

type Settlement = Reply['settled'][number];

/** Longer outcomes are left to the job's record: the relay refuses messages over 512 KiB, escapes and all. */
const longestTold = 80_000;
/** Told in one message at most; with the bound above it stays within what the relay takes. */
const mostTextTold = longestTold;

/** Jobs that settle in the same turn of the event loop are told to their API process in one message. */
export function createReplier({ telegraph, log }: { telegraph: Telegraph; log: Log }): Replier {
  const waiting = new Map<string, Settlement[]>();
  const pending = new Set<Promise<void>>();

  const publish = (replyTo: string, settled: Settlement[]) => {
    const message: Reply = { v: 1, settled };
    const told = telegraph
      .publish(topics.reply(replyTo), message)
      .catch((err) => log.debug({ err, jobIds: settled.map(({ jobId }) => jobId) }, 'replies not told'))
      .finally(() => pending.delete(told));
    pending.add(told);
  };
  const publishAll = () => {
    for (const [replyTo, settled] of waiting) for (const batch of inBatches(settled)) publish(replyTo, batch);
    waiting.clear();
  };
  const tell = ({ id = '', data: { replyTo } }: AnsweredJob, outcome: string) => {
    if (waiting.size === 0) setImmediate(publishAll);
    const settlement = outcome.length > longestTold ? { jobId: id } : { jobId: id, outcome };
    waiting.set(replyTo, [...(waiting.get(replyTo) ?? []), settlement]);
  };

  return {
    settled: tell,
    broke: (job, err) => {
      log.error({ err, jobId: job?.id }, 'job broke');
      if (job) tell(job, encodeOutcome(brokenOutcome));
    },
    flush: async () => {
      publishAll();
      await Promise.all(pending);
    },
  };
}

function inBatches(settled: Settlement[]): Settlement[][] {
  const batches: Settlement[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const settlement of settled) {
    size += settlement.outcome?.length ?? 0;
    if (size > mostTextTold) {
      batches.push([]);
      size = settlement.outcome?.length ?? 0;
    }
    batches.at(-1)?.push(settlement);
  }
  return batches;
}
