import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { type ProviderId, providerIds } from '../shared/contract.js';
import { Failure } from '../shared/failures.js';
import type { Log } from '../shared/log.js';
import {
  type ChatJob,
  encodeChatJob,
  poolBeatSchema,
  queueName,
  recordKeptMs,
  replySchema,
  topics,
} from '../shared/messages.js';
import { decodeOutcome, type Outcome } from '../shared/outcome.js';
import type { QueueStore } from '../shared/queue.js';
import { openTelegraph } from '../shared/relay.js';
import { readOutcome } from './job-record.js';
import { createPoolView, type PoolView } from './pool-view.js';
import type { WaitingRoom } from './waiting-room.js';

/** This API process's end of the three channels: queues to add to, records to read, the relay to listen to. */
export interface QueueLink {
  readonly pools: PoolView;
  /** Throws `queue_unavailable` when the store cannot be used. */
  check(): Promise<void>;
  /** Adds the job under this id; rejects within three seconds when the store is down. */
  add(jobId: string, job: Omit<ChatJob, 'v' | 'replyTo'>): Promise<void>;
  readOutcome(provider: ProviderId, jobId: string): Promise<Outcome | undefined>;
  close(): Promise<void>;
}

interface LinkDeps {
  store: QueueStore;
  waitingRoom: WaitingRoom;
  log: Log;
}

/** Every waiter's record is looked at this often, in case its telling was lost. */
const lookIntervalMs = 1000;
/** Records asked for at once. */
const lookBatch = 100;

/** Opens the channels; the store must be ready. */
export async function openQueueLink({ store, waitingRoom, log }: LinkDeps): Promise<QueueLink> {
  const node = randomUUID().replaceAll('-', '');
  const queues = new Map<ProviderId, Queue>(providerIds.map((id) => [id, store.createQueue(queueName(id))]));
  const queueOf = (id: ProviderId): Queue => {
    const queue = queues.get(id);
    if (queue === undefined) throw new TypeError('no such queue');
    return queue;
  };
  const telegraph = await openTelegraph(store, { name: 'api', log });
  const pools = createPoolView({ since: Date.now() });
  await telegraph.subscribe(topics.allPools, poolBeatSchema, pools.noteBeat);
  await telegraph.subscribe(topics.reply(node), replySchema, ({ jobId, outcome }) => {
    if (outcome) waitingRoom.settle(jobId, decodeOutcome(outcome));
    else void look(waitingRoom.waitingSince(Date.now() + 1).filter((job) => job.jobId === jobId));
  });

  const look = async (jobs: ReturnType<WaitingRoom['waitingSince']>) => {
    for (let start = 0; start < jobs.length; start += lookBatch) {
      const batch = jobs.slice(start, start + lookBatch).map(async ({ provider, jobId }) => {
        const outcome = await readOutcome(queueOf(provider), jobId);
        if (outcome) waitingRoom.settle(jobId, outcome);
      });
      await Promise.all(batch).catch((err) => log.debug({ err }, 'records could not be read'));
    }
  };
  const looking = setInterval(
    () => void look(waitingRoom.waitingSince(Date.now() - lookIntervalMs)),
    lookIntervalMs,
  );

  return {
    pools,
    check: () =>
      store.check().catch((cause) => {
        throw new Failure('queue_unavailable', { cause });
      }),
    add: async (jobId, job) => {
      const payload = encodeChatJob({ v: 1, ...job, replyTo: node });
      const removal = { age: recordKeptMs / 1000 };
      await queueOf(job.provider).add('chat', payload, {
        jobId,
        removeOnComplete: removal,
        removeOnFail: removal,
      });
    },
    readOutcome: (provider, jobId) => readOutcome(queueOf(provider), jobId),
    close: async () => {
      clearInterval(looking);
      await telegraph.close();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}
