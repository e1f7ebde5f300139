import { Job, type Queue } from 'bullmq';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { jobIdOf } from '../../shared/protocol/attempts.js';
import { decodeOrigin } from '../../shared/protocol/entries.js';
import type { ChatJobPayload } from '../../shared/protocol/messages.js';
import {
  brokenOutcome,
  decodeOutcome,
  givenUpOutcome,
  nextOf,
  type Outcome,
} from '../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../shared/protocol/stored-chat.js';
import { isNewer } from '../../shared/protocol/version.js';
import type { QueueStore, StoredJob } from '../../shared/queue/queue-store.js';
import { storeTimeoutMs, withTimeout } from '../../shared/runtime/retry.js';
import type { JobResult, PendingJob } from './chat-receiver.js';

/** The most attempts at a chat: the first, and one for each of the four providers that a fallback may name. */
const maxAttempts = 5;

interface JobRecordsDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs'>;
  /** Bounds how long the store may take to answer. */
  withTimeout?: typeof withTimeout;
}

/** The records of jobs, which are the truth about their outcomes; messages only make them known sooner. */
export class JobRecords {
  readonly #deps: JobRecordsDeps;

  constructor(deps: JobRecordsDeps) {
    this.#deps = deps;
  }

  /**
   * The state of the attempt, or of one that follows; a job that broke or was given up has ended as
   * `internal`. The end of a stored chat, once read, stays the same until its records expire. Throws within three
   * seconds when the store does not answer.
   */
  async read(job: PendingJob): Promise<JobResult> {
    const [result] = await this.readAll(job.provider, [job]);
    if (result?.status !== 'fulfilled') throw result?.reason;
    const next = result.value.state === 'settled' ? nextOf(result.value.outcome) : undefined;
    return next ? this.read({ ...job, ...next }) : result.value;
  }

  /** The job of a chat whose provider is not known, with its user's id; undefined unless it is queued or running. */
  async find(jobId: string): Promise<(PendingJob & { readonly user: string }) | undefined> {
    const unfinished = await this.#findUnfinished(jobId);
    if (unfinished === undefined) return undefined;
    const { provider, model, attempt, fallback, user } = unfinished.data;
    return { jobId, provider, model, attempt, fallback, user };
  }

  /** The same job for operators: whose it is, and since when it waits or runs. */
  async describe(id: string) {
    const unfinished = await this.#findUnfinished(id);
    if (unfinished === undefined) return undefined;
    const { data, name, timestamp } = unfinished;
    const { provider, model = null } = data;
    const user = decodeOrigin(name)?.name ?? data.user;
    const state = (await unfinished.isActive()) ? ('running' as const) : ('waiting' as const);
    return { state, job: { id, user, provider, model, addedAt: new Date(timestamp).toISOString() } };
  }

  async #findUnfinished(jobId: string): Promise<Job<ChatJobPayload> | undefined> {
    const queues = providerIds.map(this.#deps.queueOf);
    const ids = Array.from({ length: maxAttempts }, (_, n) => jobIdOf(jobId, n + 1));
    const found = queues.flatMap((queue) => ids.map((id) => Job.fromId<ChatJobPayload>(queue, id)));
    return (await Promise.all(found)).find((job) => job && job.finishedOn === undefined);
  }

  /** The states of these attempts at one provider, in their order; throws as `read` does. */
  readAll(provider: ProviderId, jobs: readonly PendingJob[]): Promise<PromiseSettledResult<JobResult>[]> {
    const { queueOf, withTimeout: bounded = withTimeout } = this.#deps;
    return bounded(storeTimeoutMs, this.#readAll(queueOf(provider), jobs));
  }

  /** Reads the jobs before the outcomes: a stored chat that was cancelled has its outcome before its job goes. */
  async #readAll(queue: Queue<ChatJobPayload>, jobs: readonly PendingJob[]) {
    const { store } = this.#deps;
    const jobIds = jobs.map(({ jobId, attempt }) => jobIdOf(jobId, attempt));
    const queued = await store.readJobs(queue, jobIds);
    const storedIds = jobs.filter(({ isStored }) => isStored).map(({ jobId }) => jobId);
    const texts = await store.records.readAll(storedIds.map(resultKey));
    const outcomes = new Map(storedIds.map((jobId, n) => [jobId, texts[n]]));
    return Promise.allSettled(
      jobs.map(async (job, n) => {
        const result = decodeResultRecord(outcomes.get(job.jobId));
        return result ?? this.#toJobResult(queue, job, queued[n] ?? { state: 'unreadable' });
      }),
    );
  }

  async #toJobResult(
    queue: Queue<ChatJobPayload>,
    { jobId, isStored, attempt }: PendingJob,
    job: StoredJob,
  ): Promise<JobResult> {
    if (job.state === 'unreadable') throw new Error('what is there is no job');
    if (job.state === 'queued') return attempt === undefined ? job : { ...job, wasTaken: true };
    if (job.state !== 'completed' && job.state !== 'failed') return { state: job.state };
    const outcome = job.state === 'failed' ? givenUpOutcome : decodeResult(job.returnValue);
    if (!isStored || nextOf(outcome)) return { state: 'settled', outcome };
    // Otherwise the guess of `decodeResult` would be recorded.
    if (job.state === 'completed') refuseNewer(job.returnValue);
    const expiresAt = (await Job.fromId<ChatJobPayload>(queue, jobIdOf(jobId, attempt)))?.data.keptUntil;
    if (expiresAt === undefined) return { state: 'settled', outcome };
    // Its worker could not record the outcome, and the job's own record expires in a minute.
    const { store } = this.#deps;
    const ttlMs = Math.max(1, Math.ceil(expiresAt - store.now()));
    const value = encodeStoredResult(outcome, job.finishedOn);
    const isRecorded = await store.records.create(resultKey(jobId), { value, ttlMs });
    // A record that was there already is what counts.
    const earlier = isRecorded ? undefined : await store.records.read(resultKey(jobId));
    return decodeResultRecord(earlier) ?? { state: 'settled', outcome, settledAt: job.finishedOn };
  }
}

function decodeResultRecord(text: string | undefined): JobResult | undefined {
  if (text === undefined) return undefined;
  refuseNewer(text);
  try {
    const { at, outcome } = decodeStoredResult(text);
    return { state: 'settled', outcome, settledAt: at };
  } catch {
    return { state: 'settled', outcome: brokenOutcome };
  }
}

/** The outcome as a worker encoded it. If it cannot be read, the job broke, or is worth another attempt. */
export function decodeResult(outcome: unknown): Outcome {
  try {
    return decodeOutcome(outcome);
  } catch {
    return isNewer(outcome) ? givenUpOutcome : brokenOutcome;
  }
}

/** Throws a retryable `internal` for the record of a newer release, whose own API processes can read it. */
export function refuseNewer(record: unknown): void {
  if (isNewer(record)) throw new Failure('internal', { detail: inRollout, retryable: true, retryAfterMs });
}

const inRollout = 'A newer release, which is being rolled out, has written this chat down; ask again.';
const retryAfterMs = 1000;

/** Gives `queue_unavailable` for any error but a failure: to a caller, all between here and the store is one. */
export const orUnavailable = <T>(work: Promise<T>): Promise<T> =>
  work.catch((cause) => {
    throw cause instanceof Failure ? cause : new Failure('queue_unavailable', { cause });
  });
