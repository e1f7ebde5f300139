import { BaseAdapter } from '@bull-board/api/dist/queueAdapters/base.js';
import type { JobState, JobStatus, QueueJob } from '@bull-board/api/dist/types.js';
import type { ProviderId } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';
import { queueName } from '../../../shared/protocol/messages.js';
import type { QueueStore, StoredJob } from '../../../shared/queue/queue-store.js';

type Queue = ReturnType<QueueStore['createQueue']>;
type BullJob = Awaited<ReturnType<Queue['getJobs']>>[number];

/** The queues that the board shows. */
export interface BoardQueues {
  /** Undefined until the queue's store was reached. */
  source: () => { queueOf(provider: ProviderId): Queue } | undefined;
  readJobs: QueueStore['readJobs'];
}

/** Jobs on a page: each is read whole, conversation and all. */
export const maxJobs = 10;
/** Several people who look share one count; in PostgreSQL it reads every job of the queue. */
const countsMaxAgeMs = 1000;

/** All but those of flows, which we have none of, and `paused`, which BullMQ has no more. */
const statuses = ['active', 'waiting', 'prioritized', 'completed', 'failed', 'delayed'] as const;

/**
 * A queue as Bull Board sees it: how many jobs there are, their ids, times and attempts. What a job holds, its name, progress, result,
 * error and log are not passed on, so that no page or answer of the board can show them. Nothing can be changed.
 */
export class TextlessQueue extends BaseAdapter {
  readonly #provider: ProviderId;
  readonly #queues: BoardQueues;
  #counted: { readonly at: number; readonly counts: Promise<Record<string, number>> } | undefined;

  constructor(provider: ProviderId, queues: BoardQueues) {
    super('bullmq', { readOnlyMode: true, allowRetries: false });
    this.#provider = provider;
    this.#queues = queues;
  }

  get #queue(): Queue {
    const source = this.#queues.source();
    if (source === undefined) throw new Failure('queue_unavailable');
    return source.queueOf(this.#provider);
  }

  override getName(): string {
    return queueName(this.#provider);
  }

  override getJobStatuses(): JobStatus[] {
    return [...statuses];
  }

  override getStatuses(): ['latest', ...JobStatus[]] {
    return ['latest', ...statuses];
  }

  override async getJobCounts(): ReturnType<BaseAdapter['getJobCounts']> {
    const isRecent = this.#counted && performance.now() - this.#counted.at < countsMaxAgeMs;
    if (!this.#counted || !isRecent)
      this.#counted = { at: performance.now(), counts: this.#queue.getJobCounts(...statuses) };
    return this.#counted.counts as ReturnType<BaseAdapter['getJobCounts']>;
  }

  /** Of several statuses the first ones, and never more than a page. */
  override async getJobs(wanted: JobStatus[], start = 0, end = start + maxJobs - 1): Promise<QueueJob[]> {
    const counts: Record<string, number> = await this.getJobCounts();
    const jobs: BullJob[] = [];
    for (const status of statuses.filter((one) => wanted.includes(one) && counts[one])) {
      const left = Math.min(end - start + 1, maxJobs) - jobs.length;
      if (left > 0) jobs.push(...(await this.#queue.getJobs([status], start, start + left - 1)));
    }
    return jobs.filter(Boolean).map((job) => this.#withoutTexts(job));
  }

  /** Only ids as we make them: others may be the names of something else in the store. */
  override async getJob(id: string): Promise<QueueJob | undefined> {
    const job = /^[0-9a-z-]{1,80}$/i.test(id) ? await this.#queue.getJob(id) : undefined;
    return job && this.#withoutTexts(job);
  }

  #withoutTexts(job: BullJob): QueueJob {
    const {
      id,
      attemptsMade,
      finishedOn = null,
      processedOn = null,
      delay,
      timestamp,
      priority,
      stacktrace,
    } = job;
    const hasFailed = Boolean(job.failedReason) || (stacktrace?.length ?? 0) > 0;
    return {
      opts: {},
      toJSON: () => ({
        ...{ id, attemptsMade, finishedOn, processedOn, delay, timestamp, priority },
        ...{ name: this.#provider, progress: 0, data: hidden, returnvalue: finishedOn ? hidden : null },
        ...{ failedReason: hasFailed ? hidden : '', stacktrace: [], opts: {} },
      }),
      // BullMQ's own reads the whole lists of waiting and active jobs.
      getState: async () => {
        const [found] = await this.#queues.readJobs(this.#queue, [String(id)]);
        return stateOf(found);
      },
      ...{ promote: refuse, remove: refuse, retry: refuse },
    };
  }

  override async isPaused(): Promise<boolean> {
    return this.#queue.isPaused();
  }

  override async getGlobalConcurrency(): Promise<number | null> {
    return (await this.#queue.getGlobalConcurrency()) ?? null;
  }

  /** What a job was about could stand there. */
  override getJobLogs = async () => [];
  override getJobSchedulers = async () => [];
  override getJobSchedulersCount = async () => 0;
  override getMetrics = async () => ({ meta: { count: 0, prevTS: 0, prevCount: 0 }, data: [], count: 0 });
  /** That of the store is none of a queue's. */
  override getRedisInfo = async () => null;
  /** Flows are read by another way than jobs; there are none. */
  getFlowProducer = async () => null;
  getQueueQualifiedName = () => this.getName();

  override clean = refuse;
  override addJob = refuse;
  override pause = refuse;
  override resume = refuse;
  override empty = refuse;
  override obliterate = refuse;
  override promoteAll = refuse;
  override removeJobScheduler = refuse;
  override updateJobScheduler = refuse;
  override runJobSchedulerNow = refuse;
  override setGlobalConcurrency = refuse;
}

/** Stands for a text. */
export const hidden = 'hidden';

/** Not reached: no address leads there. */
const refuse = async (): Promise<never> => {
  throw new Failure('method_not_allowed');
};

function stateOf(job: StoredJob | undefined): JobState {
  switch (job?.state) {
    case 'queued':
      return 'waiting';
    case 'running':
      return 'active';
    case 'completed':
    case 'failed':
      return job.state;
    default:
      return 'unknown';
  }
}
