import { setImmediate as nextTurn } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import type { ProviderId } from '../../../shared/contract.js';
import type { ApiInstruments } from '../../../shared/metrics/instruments.js';
import { type Cancel, type ChatJobPayload, type Reply, topics } from '../../../shared/protocol/messages.js';
import { writtenVersion } from '../../../shared/protocol/version.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import type { Relay } from '../../../shared/queue/relay.js';
import type { Log } from '../../../shared/runtime/log.js';
import { createErrand } from './errand.js';
import type { PendingJob } from './pending-replies.js';

/** Calls off jobs that nobody waits for any more. */
export interface Cancellation {
  /**
   * Begins to call off a job whose add has been answered; never throws. That of a stored chat may be called off any number of
   * times: nothing is done unless it is queued or running, and every API process is told.
   */
  cancel(job: PendingJob): void;
  /**
   * Begins to call off a job whose add was not answered, which the store may still execute; never throws. The pools are told as
   * soon as the store allows it, within a minute.
   */
  cancelUnconfirmed(job: PendingJob): void;
  /** Resolves when everything called off so far has been told and taken back. */
  flush(): Promise<void>;
}

interface CancellationDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'kind' | 'readJobs'>;
  relay: Pick<Relay, 'publish'>;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  log: Log;
}

/** Ids in one message; with a UUID each it stays far within what the relay takes. */
const maxIdsPerMessage = 1000;
/** Jobs looked at, or taken back, at once: thousands of callers may go at the same time, and others need the store meanwhile. */
const maxConcurrent = 10;
/** The pools are told again of a refused job after this long, when they could not be. */
const republishMs = 1000;
/** So long they remember it themselves, and whoever starts meanwhile hears of it; few deadlines are later. */
const republishForMs = 60_000;
/** A running job cannot be removed, but ends by itself in this time when its worker has heard of it. */
const abortGraceMs = 1000;

/**
 * The pools are told first, because a running call costs money as long as it runs; those who go while one message is on
 * its way are told of together in the next. Then each job is removed from its queue; one that is running and will not
 * end gets a deadline that is over.
 */
export function createCancellation(deps: CancellationDeps): Cancellation {
  const { queueOf, store, relay, metrics, log } = deps;
  /** Ids of the jobs that are being called off: nobody has it done twice at a time. */
  const underWay = new Set<string>();
  const toLookAt: PendingJob[] = [];
  const untold: CancelledJob[] = [];
  const toTakeBack: Entry[] = [];

  /** False when the store does not take the message. */
  const tell = (topic: string, message: Cancel | Reply): Promise<boolean> =>
    relay.publish(topic, message).then(
      () => true,
      (err) => {
        log.debug({ err, topic }, 'cancels not published');
        return false;
      },
    );
  const tellPools = async (provider: ProviderId, jobs: CancelledJob[]) => {
    const jobIds = jobs.map(({ jobId }) => jobId);
    if (await tell(topics.cancel(provider), { v: writtenVersion, jobIds })) return;
    const since = performance.now() - republishForMs;
    const refused = jobs.filter(({ refusedAt }) => refusedAt !== undefined && refusedAt > since);
    if (refused.length > 0) setTimeout(() => callOffAgain(refused), republishMs).unref();
  };
  const tellSome = async () => {
    // So that those who go in the same moment are told of together.
    await nextTurn();
    const jobs = untold.splice(0, maxIdsPerMessage);
    const byProvider = Map.groupBy(jobs, ({ provider }) => provider);
    const told: Promise<unknown>[] = [...byProvider].map(([provider, its]) => tellPools(provider, its));
    // Whoever is not told looks at the record.
    const settled = jobs.filter(({ isStored }) => isStored).map(({ jobId }) => ({ jobId }));
    if (settled.length > 0) told.push(tell(topics.storedResult, { v: writtenVersion, settled }));
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
    } else setTimeout(() => startTakingBack({ ...entry, isLast: true }), abortGraceMs).unref();
  };
  const giveUp = (job: PendingJob, err: unknown) => {
    underWay.delete(job.jobId);
    log.debug({ err, ...job }, 'job not taken back');
  };
  const takeSomeBack = async () => {
    await telling.done();
    const batch = toTakeBack
      .splice(0, maxConcurrent)
      .map((entry) => takeBack(entry).catch((err) => giveUp(entry.job, err)));
    await Promise.all(batch);
  };
  const takingBack = createErrand(() => toTakeBack.length > 0, takeSomeBack);
  const startTakingBack = (entry: Entry) => {
    toTakeBack.push(entry);
    takingBack.start();
  };

  const startCallingOff = (job: CancelledJob) => {
    untold.push(job);
    telling.start();
    startTakingBack({ job, isLast: false });
  };
  const callOff = (job: CancelledJob) => {
    const kind = job.refusedAt !== undefined ? 'refused' : job.isStored ? 'asked' : 'caller_gone';
    metrics.cancels.inc({ provider: job.provider, kind });
    startCallingOff(job);
  };
  const callOffAgain = (jobs: CancelledJob[]) => {
    for (const job of jobs) startCallingOff(job);
  };
  const lookAtSome = async () => {
    await nextTurn();
    const looks = toLookAt
      .splice(0, maxConcurrent)
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
      if (!job.isStored) return callOff(job);
      toLookAt.push(job);
      looking.start();
    },
    cancelUnconfirmed: (job) => {
      if (underWay.has(job.jobId)) return;
      underWay.add(job.jobId);
      // Redis executes in order what comes on one connection: right behind its add the job is gone before anybody takes it.
      if (store.kind === 'redis')
        void queueOf(job.provider)
          .remove(job.jobId)
          .catch(() => undefined);
      callOff({ ...job, refusedAt: performance.now() });
    },
    flush: async () => {
      await looking.done();
      await Promise.all([telling.done(), takingBack.done()]);
    },
  };
}

/** `refusedAt`: when its add was given up, by `performance.now()`. */
type CancelledJob = PendingJob & { readonly refusedAt?: number };

interface Entry {
  readonly job: CancelledJob;
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
