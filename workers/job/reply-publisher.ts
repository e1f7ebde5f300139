import { chatJobSchema, type Reply, topics } from '../../shared/protocol/messages.js';
import { encodeOutcome, givenUpOutcome } from '../../shared/protocol/outcome.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import type { StoredResults } from './stored-results.js';

/**
 * Tells the API process that waits for a job how it ended; the job's record says the same to whoever missed it. Of kept
 * chats every API process is told, since any of them may have a caller who has come back.
 */
export interface ReplyPublisher {
  /** `outcome` as `encodeOutcome` writes it. */
  settled(job: AnsweredJob, outcome: string): void;
  /** For a job that ended in an unexpected error, or was given up; of a stored chat it is recorded first. */
  broke(job: AnsweredJob | undefined, error: Error): void;
  /** Resolves when everything told so far is on its way. */
  flush(): Promise<void>;
}

/** A job, as far as telling of it goes. */
interface AnsweredJob {
  id?: string | undefined;
  data: unknown;
}

/** What of a job's data is read here; a job that breaks may have any. */
const addressSchema = chatJobSchema.pick({ replyTo: true, keptUntil: true });

type JobResultMessage = Reply['settled'][number];

/** Longer outcomes are left to the job's record: the relay refuses messages over 512 KiB, escapes and all. */
const maxOutcomeChars = 80_000;
/** Told in one message at most; with the bound above it stays within what the relay takes. */
const maxMessageChars = maxOutcomeChars;

interface ReplyPublisherDeps {
  relay: Relay;
  storedResults: StoredResults;
  log: Log;
}

/** Jobs that settle in the same turn of the event loop are told to their API process in one message. */
export function createReplyPublisher({ relay, storedResults, log }: ReplyPublisherDeps): ReplyPublisher {
  /** By topic. */
  const waiting = new Map<string, JobResultMessage[]>();
  const recording = new Set<Promise<void>>();
  const pending = new Set<Promise<void>>();

  const publish = (topic: string, settled: JobResultMessage[]) => {
    const message: Reply = { v: writtenVersion, settled };
    const told = relay
      .publish(topic, message)
      .catch((err) => log.debug({ err, jobIds: settled.map(({ jobId }) => jobId) }, 'replies not told'))
      .finally(() => pending.delete(told));
    pending.add(told);
  };
  const publishAll = () => {
    for (const [topic, settled] of waiting) for (const batch of inBatches(settled)) publish(topic, batch);
    waiting.clear();
  };
  const tellOn = (topic: string, settlement: JobResultMessage) => {
    if (waiting.size === 0) setImmediate(publishAll);
    const others = waiting.get(topic);
    if (others === undefined) waiting.set(topic, [settlement]);
    else others.push(settlement);
  };
  const tell = ({ id = '', data }: AnsweredJob, outcome: string) => {
    const settlement = outcome.length > maxOutcomeChars ? { jobId: id } : { jobId: id, outcome };
    const { data: address } = addressSchema.safeParse(data);
    // Whoever waits for a job that does not say so finds its record.
    if (address === undefined) return;
    tellOn(topics.reply(address.replyTo), settlement);
    if (address.keptUntil !== undefined) tellOn(topics.storedResult, { jobId: id });
  };
  const tellBroken = async (job: AnsweredJob) => {
    const keptUntil = addressSchema.safeParse(job.data).data?.keptUntil;
    const kept = storedResults.of({ id: job.id, keptUntil });
    tell(job, encodeOutcome((await kept?.settle(givenUpOutcome)) ?? givenUpOutcome));
  };

  return {
    settled: tell,
    broke: (job, err) => {
      log.error({ err, jobId: job?.id }, 'job broke');
      if (!job) return;
      const recorded = tellBroken(job).finally(() => recording.delete(recorded));
      recording.add(recorded);
    },
    flush: async () => {
      await Promise.all(recording);
      publishAll();
      await Promise.all(pending);
    },
  };
}

function inBatches(settled: JobResultMessage[]): JobResultMessage[][] {
  const batches: JobResultMessage[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const settlement of settled) {
    size += settlement.outcome?.length ?? 0;
    if (size > maxMessageChars) {
      batches.push([]);
      size = settlement.outcome?.length ?? 0;
    }
    batches.at(-1)?.push(settlement);
  }
  return batches;
}
