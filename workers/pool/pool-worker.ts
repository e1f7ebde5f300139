import { z } from 'zod';
import type { Config } from '../../shared/config/config.js';
import type { Failure } from '../../shared/failures.js';
import { type ChatJobPayload, chatJobSchema, queueName } from '../../shared/protocol/messages.js';
import { encodeOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import { isNewer } from '../../shared/protocol/version.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import type { ActiveJobs } from '../job/active-jobs.js';
import { type ChatJobDeps, runChatJob } from '../job/chat-job.js';
import { NotBegun } from '../job/circuit.js';
import type { LoadTracker } from '../job/load-tracker.js';
import type { PoolMetrics } from '../job/pool-metrics.js';
import type { Slots } from '../job/slots.js';
import type { StoredResults } from '../job/stored-results.js';
import { ProviderCallError } from '../providers/error-classification.js';
import { createRequeue, type Requeue, type ReturnableJob } from './requeue.js';

interface PoolWorkerDeps {
  /** What the pool's jobs work with. */
  shared: Pick<ChatJobDeps, 'provider' | 'settings' | 'account' | 'circuits' | 'budget' | 'now'> & {
    metrics: PoolMetrics;
  };
  slots: Slots;
  config: Pick<Config, 'WORKER_LOCK_MS' | 'WORKER_STALLED_CHECK_MS'>;
  store: QueueStore;
  workerName: string;
  load: LoadTracker;
  jobs: ActiveJobs;
  /** Filled here: the jobs whose ends are not stored yet. */
  unsettled: Set<string>;
  storedResults: StoredResults;
  log: Log;
}

/** What of BullMQ's job is read. */
interface QueuedJob extends ReturnableJob {
  data: unknown;
  /** 0 is the most urgent. */
  priority?: number;
}

/** A job that was started this often and never finished takes its workers down: it is given up. */
const maxStarts = 2;

/** Starts BullMQ's worker of a pool, which runs chat jobs and stores what became of them. */
export function createPoolWorker(deps: PoolWorkerDeps): ReturnType<QueueStore['createWorker']> {
  const { shared, config, store, workerName, load, jobs, unsettled, log } = deps;
  const requeue = createRequeue(log, store.now);
  const run = async (job: QueuedJob, token?: string): Promise<string> => {
    const { id = '' } = job;
    unsettled.add(id);
    const answer = (stop: AbortSignal) => runJob({ job, token, stop }, requeue, deps);
    const outcome = await load.track(() => jobs.run(id, answer));
    recordCall(load, outcome);
    shared.metrics.recordOutcome(outcome);
    log.info({ jobId: id, ...facts(outcome) }, 'job completed');
    return encodeOutcome(outcome);
  };
  const worker = store.createWorker(queueName(shared.provider.id), run, {
    name: workerName,
    concurrency: shared.settings.concurrency,
    lockDuration: config.WORKER_LOCK_MS,
    stalledInterval: config.WORKER_STALLED_CHECK_MS,
    // Not by starts in all: a job that is handed back has taken nobody down.
    maxStalledCount: maxStarts - 1,
  });
  const onEnded = (job: FinishedJob | undefined) => {
    unsettled.delete(job?.id ?? '');
    if (job) dropLongConversation(job, log);
  };
  worker.on('completed', onEnded);
  worker.on('failed', onEnded);
  // Whatever such a job still gives, the store refuses: BullMQ then tells neither 'completed' nor 'failed'.
  return worker.on('lockRenewalFailed', (jobIds) => {
    log.warn({ jobIds }, 'jobs lost to another worker');
    jobs.lose(jobIds);
    for (const jobId of jobIds) unsettled.delete(jobId);
  });
}

/** What operators need to know of a failure that was expected: whose fault it was, in the provider's words; no stack. */
function knownOf({ code, cause }: Failure): object {
  if (!(cause instanceof ProviderCallError)) return { code };
  const { name: error, status, word } = cause;
  return { code, error, status, word };
}

interface TakenJob {
  job: QueuedJob;
  token: string | undefined;
  stop: AbortSignal;
}

/** Answers the job, or throws `HandedBack` when it has gone back to its queue. */
async function runJob(
  { job, token, stop }: TakenJob,
  requeue: Requeue,
  deps: PoolWorkerDeps,
): Promise<Outcome> {
  const { shared, slots, unsettled, storedResults, log } = deps;
  const { id = '', timestamp: addedAt, priority = 0 } = job;
  const slot = slots.open({ priority, addedAt });
  try {
    if (isNewer(job.data)) {
      unsettled.delete(id);
      return await requeue.deferToNewerRelease(job, token);
    }
    const chatJob = chatJobSchema.parse(job.data);
    await slot.take();
    return await runChatJob(chatJob, addedAt, {
      ...shared,
      load: deps.load,
      slot,
      mayGoBack: () => requeue.isFirst(id),
      kept: storedResults.of({ id, keptUntil: chatJob.keptUntil }, stop),
      stop,
      onFailure: (err) => log.warn({ jobId: id, ...knownOf(err) }, 'job failed'),
    });
  } catch (error) {
    if (!(error instanceof NotBegun)) throw error;
    unsettled.delete(id);
    return await requeue.requeue(job, token);
  } finally {
    slot.close();
  }
}

/** What of BullMQ's job is needed once it has ended. */
interface FinishedJob {
  id?: string | undefined;
  data: ChatJobPayload;
  updateData(data: ChatJobPayload): Promise<void>;
}

/** Characters of a conversation that are worth a command of their own; shorter ones stay as long as the job's record. */
const longConversation = 16_384;

/** What broke may be anything. */
const withTurns = z.object({ turns: z.string() });

/** Nobody reads the conversation of a job that has ended, and thousands of long ones would fill the store. */
function dropLongConversation(job: FinishedJob, log: Log): void {
  const { success, data } = withTurns.safeParse(job.data);
  if (!success || data.turns.length < longConversation) return;
  const dropped = job.updateData({ ...job.data, turns: '[]' });
  dropped.catch((err) => log.debug({ err, jobId: job.id }, 'conversation not dropped'));
}

/** A call that failed, or that nobody waited for any more, says nothing of how long the others take. */
function recordCall(load: LoadTracker, outcome: Outcome): void {
  const timedOut =
    outcome.kind === 'failed' && (outcome.code === 'timeout' || outcome.code === 'provider_timeout');
  const gaveAnswer = outcome.kind !== 'failed' && outcome.kind !== 'cancelled';
  if (outcome.providerMs > 0 && (gaveAnswer || timedOut)) load.recordCall(outcome.providerMs, { timedOut });
}

/** What of an outcome may be logged: everything but its text. */
function facts(outcome: Outcome): object {
  const { kind, queueMs, providerMs } = outcome;
  return { outcome: kind === 'failed' ? outcome.code : kind, queueMs, providerMs };
}
