import { setImmediate as nextTurn } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import type { ProviderId } from '../shared/contract.js';
import type { ApiInstruments } from '../shared/instruments.js';
import type { Log } from '../shared/log.js';
import { type Cancel, type ChatJobPayload, type Reply, topics } from '../shared/messages.js';
import type { QueueStore } from '../shared/queue-store.js';
import type { Telegraph } from '../shared/relay.js';
import { writtenVersion } from '../shared/versions.js';
import { createErrand } from './errand.js';
import type { AwaitedJob } from './waiting-room.js';

/** Calls off jobs that nobody waits for any more. */
export interface Cancellation {
  /**
   * Begins to call off a job whose add has been answered; never throws. That of a kept chat may be called off any number of
   * times: nothing is done unless it is queued or running, and every API process is told.
   */
  cancel(job: AwaitedJob): void;
  /** Resolves when everything called off so far has been told and taken back. */
  flush(): Promise<void>;
}

interface CancellationDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'readJobs'>;
  telegraph: Pick<Telegraph, 'publish'>;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  log: Log;
}

/** Ids in one message; with a UUID each it stays far within what the relay takes. */
const mostTold = 1000;
/** Jobs looked at, or taken back, at once: thousands of callers may go at the same time, and others need the store meanwhile. */
const mostAtOnce = 10;
/** A running job cannot be removed, but ends by itself in this time when its worker has heard of it. */
const endsWithinMs = 1000;

/**
 * The pools are told first, because a running call costs money as long as it runs; those who go while one message is on
 * its way are told of together in the next. Then each job is removed from its queue; one that is running and will not
 * end gets a deadline that is over.
 */
export function createCancellation(deps: CancellationDeps): Cancellation {
  const { queueOf, store, telegraph, metrics, log } = deps;
  /** Ids of the jobs that are being called off: nobody has it done twice at a time. */
  const underWay = new Set<string>();
  const toLookAt: AwaitedJob[] = [];
  const untold: AwaitedJob[] = [];
  const toTakeBack: Entry[] = [];

  const tell = (topic: string, message: Cancel | Reply) =>
    telegraph.publish(topic, message).catch((err) => log.debug({ err, topic }, 'cancels not told'));
  const tellSome = async () => {
    // So that those who go in the same moment are told of together.
    await nextTurn();
    const jobs = untold.splice(0, mostTold);
    const byProvider = Map.groupBy(jobs, ({ provider }) => provider);
    const told = [...byProvider].map(([provider, its]) =>
      tell(topics.cancel(provider), { v: writtenVersion, jobIds: its.map(({ jobId }) => jobId) }),
    );
    // Whoever is not told looks at the record.
    const settled = jobs.filter(({ isKept }) => isKept).map(({ jobId }) => ({ jobId }));
    if (settled.length > 0) told.push(tell(topics.keptReply, { v: writtenVersion, settled }));
    await Promise.all(told);
  };
  const telling = createErrand(() => untold.length > 0, tellSome);
  const takeBack = async (entry: Entry) => {
    const { provider, jobId } = entry.job;
    const queue = queueOf(provider);
    const isRemoved = (await queue.remove(jobId)) === 1;
    if (isRemoved) underWay.delete(jobId);
    else if (entry.isLast) {
      await endDeadline(queue, jobId);
      underWay.delete(jobId);
    } else setTimeout(() => startTakingBack({ ...entry, isLast: true }), endsWithinMs).unref();
  };
  const giveUp = (job: AwaitedJob, err: unknown) => {
    underWay.delete(job.jobId);
    log.debug({ err, ...job }, 'job not taken back');
  };
  const takeSomeBack = async () => {
    await telling.done();
    const batch = toTakeBack
      .splice(0, mostAtOnce)
      .map((entry) => takeBack(entry).catch((err) => giveUp(entry.job, err)));
    await Promise.all(batch);
  };
  const takingBack = createErrand(() => toTakeBack.length > 0, takeSomeBack);
  const startTakingBack = (entry: Entry) => {
    toTakeBack.push(entry);
    takingBack.start();
  };

  const callOff = (job: AwaitedJob) => {
    metrics.cancels.inc({ provider: job.provider, kind: job.isKept ? 'asked' : 'caller_gone' });
    untold.push(job);
    telling.start();
    startTakingBack({ job, isLast: false });
  };
  const lookAtSome = async () => {
    await nextTurn();
    const looks = toLookAt
      .splice(0, mostAtOnce)
      .map(async (job) => ({ job, goesOn: await isUnfinished(store, queueOf(job.provider), job.jobId) }));
    for (const { job, goesOn } of await Promise.all(looks)) {
      if (goesOn) callOff(job);
      else underWay.delete(job.jobId);
    }
  };
  const looking = createErrand(() => toLookAt.length > 0, lookAtSome);

  return {
    cancel: (job) => {
      if (underWay.has(job.jobId)) return;
      underWay.add(job.jobId);
      if (!job.isKept) return callOff(job);
      toLookAt.push(job);
      looking.start();
    },
    flush: async () => {
      await looking.done();
      await Promise.all([telling.done(), takingBack.done()]);
    },
  };
}

interface Entry {
  readonly job: AwaitedJob;
  /** Whether it has had time to end since it was told of. */
  readonly isLast: boolean;
}

/** A job that the store does not tell of may be running. */
async function isUnfinished(
  store: Pick<QueueStore, 'readJobs'>,
  queue: Queue<ChatJobPayload>,
  jobId: string,
): Promise<boolean> {
  const [job] = await store.readJobs(queue, [jobId]).catch(() => []);
  return job === undefined || !['completed', 'failed', 'unknown'].includes(job.state);
}

/** Should the worker die that runs the job, the next one finds its deadline over, and makes no call. */
async function endDeadline(queue: Queue<ChatJobPayload>, jobId: string): Promise<void> {
  const job = await Job.fromId<ChatJobPayload>(queue, jobId);
  await job?.updateData({ ...job.data, deadline: 0 });
}
