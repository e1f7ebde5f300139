import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Queue } from 'bullmq';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';
import type { ApiInstruments } from '../../../shared/metrics/instruments.js';
import {
  type ChatJob,
  type ChatJobPayload,
  encodeChatJob,
  jobRecordTtlMs,
  poolHeartbeatSchema,
  queueName,
  type Reply,
  resultMessageSchema,
  topics,
} from '../../../shared/protocol/messages.js';
import { writtenVersion } from '../../../shared/protocol/version.js';
import { priorityOf, type ShareLevel } from '../../../shared/queue/priority.js';
import type { QueueDepth, QueueStore } from '../../../shared/queue/queue-store.js';
import { openRelay } from '../../../shared/queue/relay.js';
import type { Log } from '../../../shared/runtime/log.js';
import { withTimeout } from '../../../shared/runtime/with-timeout.js';
import { createPoolRegistry, type PoolRegistry } from '../pools/pool-registry.js';
import { createCancellation } from './cancellation.js';
import { type JobResult, readable, watchJobResults } from './job-results.js';
import type { PendingJob, PendingReplies } from './pending-replies.js';

/** This API process's end of the three channels: queues to add to, records to read, the relay to listen to. */
export interface JobClient {
  readonly pools: PoolRegistry;
  /** Throws `queue_unavailable` when the store cannot be used. */
  check(): Promise<void>;
  /** Adds the job under this id; throws `queue_unavailable` within three seconds when the store is down. */
  add(jobId: string, job: NewJob): Promise<void>;
  /** What the records say of the job. */
  read(job: PendingJob): Promise<JobResult>;
  /** What there is to do for the provider; throws while the store cannot be reached. */
  measure(provider: ProviderId): Promise<QueueDepth>;
  /** Begins to call off a job whose add has been answered; never throws. */
  cancel(job: PendingJob): void;
  /** As `cancel`, for a job whose add was not answered: the store may still execute it. */
  cancelUnconfirmed(job: PendingJob): void;
  /** As `cancel`, for the job of a stored chat whose outcome says so already, any number of times; who waits for it is told. */
  cancelStored(job: PendingJob): void;
  close(): Promise<void>;
}

/** A job, as far as it is not for the link to say, and its turn; an asynchronous one is done after all that are not. */
export type NewJob = Omit<ChatJob, 'v' | 'replyTo'> & {
  readonly isAsync?: boolean;
  readonly level?: ShareLevel;
};

interface JobClientDeps {
  store: QueueStore;
  pendingReplies: PendingReplies;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  log: Log;
}

/** A store that does not take the job in this time counts as down; if it takes it later, the deadline bounds that. */
const addTimeoutMs = 2500;
/** A lost connection is back within half a second; adding a job again whose add was executed does nothing. */
const timeoutMs = 700;
const pauseMs = 50;
/** How long the store may take for what is still to be called off. */
const closingMs = 1000;

/** Opens the channels; the store must be ready. */
export async function openJobClient({
  store,
  pendingReplies,
  metrics,
  log,
}: JobClientDeps): Promise<JobClient> {
  const node = randomUUID().replaceAll('-', '');
  const queues = new Map<ProviderId, Queue>(providerIds.map((id) => [id, store.createQueue(queueName(id))]));
  const queueOf = (id: ProviderId): Queue<ChatJobPayload> => {
    const queue = queues.get(id);
    if (queue === undefined) throw new TypeError('no such queue');
    return queue;
  };
  const closeQueues = () => Promise.all([...queues.values()].map((queue) => queue.close()));
  const open = async () => {
    // In PostgreSQL a queue that could not be opened at once never can be.
    await Promise.all([...queues.values()].map((queue) => queue.waitUntilReady()));
    return openRelay(store, { name: 'api', log });
  };
  const relay = await open().catch(async (error) => {
    await withTimeout(closingMs, closeQueues()).catch(() => undefined);
    throw error;
  });
  const pools = createPoolRegistry({ since: performance.now() });
  const records = watchJobResults({ queueOf, store, pendingReplies, log });
  const cancellation = createCancellation({ queueOf, store, relay, metrics, log });
  const close = async () => {
    records.stop();
    await withTimeout(closingMs, cancellation.flush()).catch(() => undefined);
    await relay.close();
    await closeQueues();
  };
  const hear = ({ settled }: Reply) => {
    const untold: PendingJob[] = [];
    for (const { jobId, outcome } of settled) {
      const job = pendingReplies.find(jobId);
      if (outcome) pendingReplies.settle(jobId, readable(outcome));
      else if (job) untold.push(job);
    }
    void records.look(untold);
  };
  const away = (cause: unknown): never => {
    pools.recordOutage();
    throw new Failure('queue_unavailable', { cause });
  };
  try {
    await relay.subscribe(topics.allPools, poolHeartbeatSchema, pools.onHeartbeat);
    await relay.subscribe(topics.reply(node), resultMessageSchema, hear);
    await relay.subscribe(topics.storedResult, resultMessageSchema, hear);
  } catch (error) {
    await close();
    throw error;
  }

  return {
    pools,
    check: () => store.check().catch(away),
    add: async (jobId, { isAsync = false, level = 0, ...job }) => {
      const payload = encodeChatJob({ v: writtenVersion, ...job, replyTo: node });
      const removal = { age: jobRecordTtlMs / 1000 };
      const options = {
        jobId,
        timestamp: store.now(),
        removeOnComplete: removal,
        removeOnFail: removal,
        priority: priorityOf(level, { isAsync }),
      };
      const adding = retryBriefly(() => queueOf(job.provider).add('chat', payload, options));
      await withTimeout(addTimeoutMs, adding).catch(away);
    },
    read: records.read,
    measure: (provider) => store.measure(queueOf(provider)),
    cancel: cancellation.cancel,
    cancelUnconfirmed: cancellation.cancelUnconfirmed,
    cancelStored: (job) => cancellation.cancel({ ...job, isStored: true }),
    close,
  };
}

/** Tries again for a while. */
async function retryBriefly<T>(work: () => Promise<T>): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (Date.now() + pauseMs > until) throw error;
      await delay(pauseMs);
    }
  }
}
