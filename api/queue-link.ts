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
  type Reply,
  recordKeptMs,
  replySchema,
  topics,
} from '../shared/messages.js';
import type { Outcome } from '../shared/outcome.js';
import type { QueueStore } from '../shared/queue.js';
import { openTelegraph } from '../shared/relay.js';
import { within } from '../shared/within.js';
import { readable, readOutcome, watchJobRecords } from './job-records.js';
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

/** A store that does not take the job in this time counts as down; if it takes it later, the deadline bounds that. */
const addTimeoutMs = 2500;

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
  const records = watchJobRecords({ queueOf, waitingRoom, log });
  const close = async () => {
    records.stop();
    await telegraph.close();
    await Promise.all([...queues.values()].map((queue) => queue.close()));
  };
  const hear = ({ settled }: Reply) => {
    const untold = new Set<string>();
    for (const { jobId, outcome } of settled) {
      if (outcome) waitingRoom.settle(jobId, readable(outcome));
      else untold.add(jobId);
    }
    if (untold.size > 0) void records.look(waitingRoom.waiting().filter(({ jobId }) => untold.has(jobId)));
  };
  try {
    await telegraph.subscribe(topics.allPools, poolBeatSchema, pools.noteBeat);
    await telegraph.subscribe(topics.reply(node), replySchema, hear);
  } catch (error) {
    await close();
    throw error;
  }

  return {
    pools,
    check: () =>
      store.check().catch((cause) => {
        throw new Failure('queue_unavailable', { cause });
      }),
    add: async (jobId, job) => {
      const payload = encodeChatJob({ v: 1, ...job, replyTo: node });
      const removal = { age: recordKeptMs / 1000 };
      const adding = queueOf(job.provider).add('chat', payload, {
        jobId,
        removeOnComplete: removal,
        removeOnFail: removal,
      });
      await within(addTimeoutMs, adding);
    },
    readOutcome: (provider, jobId) => readOutcome(queueOf(provider), jobId),
    close,
  };
}
