import { LRUCache } from 'lru-cache';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Cancel } from '../../shared/protocol/messages.js';
import { Cancelled } from '../gate/gated-call.js';
import { chatIdOf, type QueuedJob, type RunningJob } from './running-job.js';

/** How busy a pool is. */
export interface Load {
  /** Jobs that have not ended. */
  readonly inFlight: number;
  /** Jobs whose outcomes are not stored yet. */
  readonly unsettled: number;
  /** Age of the oldest job in flight, in milliseconds; undefined when there is none. */
  readonly oldestJobMs: number | undefined;
}

/** At most this many cancelled chats, and removed users, are remembered: a megabyte or two. */
const maxRemembered = 10_000;
const rememberedMs = 60_000;

/**
 * The jobs that this process has taken for all its pools. Cancelled chats are remembered for a minute: a job of one may
 * still be on its way from the queue, or be taken over from a worker that died. Removed users stay remembered.
 */
export class RunningJobs {
  /** The jobs of each chat. A job whose lock was lost can run here twice, and so can two attempts at one chat. */
  readonly #jobs = new Map<string, RunningJob[]>();
  readonly #cancelled: LRUCache<string, true>;
  readonly #removedUsers = new LRUCache<string, true>({ max: maxRemembered });
  /** When API processes were found to be gone, in milliseconds since the epoch. */
  #goneApis: ReadonlyMap<string, number> = new Map();
  #abortedWith: Error | undefined;

  constructor(clock: { now(): number } = performance) {
    this.#cancelled = new LRUCache({ max: maxRemembered, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  /** To be called when the job has been taken; aborts it at once if it is no longer wanted. */
  open(job: RunningJob): void {
    this.#jobs.set(job.chatId, [...this.ofChat(job.chatId), job]);
    if (this.#abortedWith !== undefined) job.abort(this.#abortedWith);
    if (this.#isUnwanted(job)) job.abort(new Cancelled());
  }

  /** To be called when BullMQ is done with the job. */
  close(job: RunningJob): void {
    const left = this.ofChat(job.chatId).filter((other) => other !== job);
    if (left.length > 0) this.#jobs.set(job.chatId, left);
    else this.#jobs.delete(job.chatId);
  }

  /** Oldest first. */
  ofChat(chatId: string): readonly RunningJob[] {
    return this.#jobs.get(chatId) ?? [];
  }

  *ofPool(provider: ProviderId): Iterable<RunningJob> {
    for (const job of this.#all()) if (job.provider === provider) yield job;
  }

  /** The job that BullMQ knows as this. */
  find(queued: QueuedJob): RunningJob | undefined {
    return this.ofChat(chatIdOf(queued)).find((job) => job.queued === queued);
  }

  loadOf(provider: ProviderId): Load {
    const jobs = [...this.ofPool(provider)];
    const inFlight = jobs.filter((job) => job.isInFlight);
    const oldestAt = Math.min(...inFlight.map(({ takenAt }) => takenAt));
    return {
      inFlight: inFlight.length,
      unsettled: jobs.filter(({ holdsLock }) => holdsLock).length,
      oldestJobMs: inFlight.length > 0 ? Math.round(performance.now() - oldestAt) : undefined,
    };
  }

  /** The API processes that alone wait for jobs that run here. */
  get apis(): Set<string> {
    return new Set([...this.#all()].flatMap(({ isInFlight, api }) => (isInFlight && api) || []));
  }

  /** Aborts the jobs of these chats, also the ones that start within the next minute, and of these users. */
  cancel({ jobIds, users = [] }: Pick<Cancel, 'jobIds' | 'users'>): void {
    for (const chatId of jobIds) {
      for (const job of this.ofChat(chatId)) job.abort(new Cancelled());
      this.#cancelled.set(chatId, true);
    }
    this.cancelUsers(users);
  }

  /** Aborts the jobs of these users, and all that start from now on. */
  cancelUsers(ids: readonly string[]): void {
    const added = ids.filter((id) => !this.#removedUsers.has(id));
    for (const id of added) this.#removedUsers.set(id, true);
    if (added.length > 0) this.#abortUnwanted();
  }

  /** Aborts jobs, also later ones, that only these processes wait for; those that one adds after it was gone go on. */
  cancelApis(gone: ReadonlyMap<string, number>): void {
    this.#goneApis = gone;
    this.#abortUnwanted();
  }

  abortStreams(reason: Error): void {
    for (const job of this.#all()) if (job.deltas) job.abort(reason);
  }

  /** Aborts all jobs, and every job that starts from now on. */
  abortAll(reason: Error): void {
    this.#abortedWith = reason;
    for (const job of this.#all()) job.abort(reason);
  }

  *#all(): Iterable<RunningJob> {
    for (const jobs of this.#jobs.values()) yield* jobs;
  }

  #abortUnwanted(): void {
    for (const job of this.#all()) if (this.#isUnwanted(job)) job.abort(new Cancelled());
  }

  #isUnwanted({ chatId, api = '', facts: { user = '' }, queued }: RunningJob): boolean {
    const goneAt = this.#goneApis.get(api);
    const isLost = goneAt !== undefined && queued.timestamp <= goneAt;
    return isLost || this.#cancelled.has(chatId) || this.#removedUsers.has(user);
  }
}
