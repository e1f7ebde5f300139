import { LRUCache } from 'lru-cache';
import type { Cancel } from '../../shared/protocol/messages.js';

/** The reason for aborting a job whose caller no longer waits for it, or may no longer have it done. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** Why a job is aborted whose lock could not be renewed: another worker has it now, or will have it. */
export class LockLost extends Error {
  override readonly name = 'LockLost';
}

/** A running job, with its user and the process that waits for it. */
export interface RunningJob {
  readonly jobId: string;
  /** Of its lock. */
  readonly token?: string | undefined;
  /** The chat that it is an attempt at. */
  readonly chatId: string;
  /** Id of the user who asks. */
  readonly user?: string | undefined;
  /** The API process that alone waits for it; undefined for a stored chat, which any of them may be asked for. */
  readonly api?: string | undefined;
  /** When it was added to its queue, in milliseconds since the epoch. */
  readonly addedAt?: number | undefined;
}

/** At most this many cancelled chats, and removed users, are remembered: a megabyte or two. */
const maxRemembered = 10_000;
const rememberedMs = 60_000;

/**
 * The jobs that run in this process, each with a signal of its own. Cancelled chats are remembered for a minute: a job
 * of one may still be on its way from the queue when its cancel arrives, or may be taken over from a worker that died.
 * Removed users are not forgotten after a minute.
 */
export class ActiveJobs {
  /** Not by id: a job whose lock was lost can run here twice. */
  readonly #active = new Set<RunningJob & { controller: AbortController }>();
  readonly #cancelled: LRUCache<string, true>;
  readonly #removedUsers = new LRUCache<string, true>({ max: maxRemembered });
  /** When API processes were found to be gone, in milliseconds since the epoch. */
  #goneApis: ReadonlyMap<string, number> = new Map();
  #abortedWith: Error | undefined;

  constructor(clock: { now(): number } = performance) {
    this.#cancelled = new LRUCache({ max: maxRemembered, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  /** Runs a job of this chat, under an id of its own unless it is the first; its signal aborts with `Cancelled`, with `LockLost`, or with the reason given to `abortAll`. */
  async run<T>(
    chatId: string,
    job: (signal: AbortSignal) => Promise<T>,
    { jobId = chatId, ...owner }: Partial<Omit<RunningJob, 'chatId'>> = {},
  ): Promise<T> {
    const controller = new AbortController();
    if (this.#abortedWith !== undefined) controller.abort(this.#abortedWith);
    const entry = { jobId, chatId, ...owner, controller };
    if (this.#isUnwanted(entry)) controller.abort(new Cancelled());
    this.#active.add(entry);
    try {
      return await job(controller.signal);
    } finally {
      this.#active.delete(entry);
    }
  }

  onCancel({ jobIds, users = [] }: Pick<Cancel, 'jobIds' | 'users'>): void {
    this.cancel(jobIds);
    this.cancelUsers(users);
  }

  /** Aborts the jobs of these chats where they run, and those that start within the next minute. */
  cancel(chatIds: readonly string[]): void {
    this.abort(chatIds, new Cancelled());
    for (const chatId of chatIds) this.#cancelled.set(chatId, true);
  }

  /** Aborts the jobs of these users, and all that start from now on. */
  cancelUsers(ids: readonly string[]): void {
    const added = ids.filter((id) => !this.#removedUsers.has(id));
    for (const id of added) this.#removedUsers.set(id, true);
    if (added.length > 0) this.#abortUnwanted();
  }

  /** The API processes that alone wait for jobs that run here. */
  get apis(): Set<string> {
    return new Set([...this.#active].flatMap(({ api }) => api ?? []));
  }

  /**
   * Aborts the jobs that only these API processes wait for, whether they run or start later. Jobs that a process added
   * after it was found to be gone go on: it has come back.
   */
  cancelApis(gone: ReadonlyMap<string, number>): void {
    this.#goneApis = gone;
    this.#abortUnwanted();
  }

  /**
   * Aborts these jobs where they run, because their locks were lost, and returns those that do; one that starts again here is not
   * aborted.
   */
  abortLost(locks: ReadonlyMap<string, string>): string[] {
    const running = [...this.#active].filter(({ jobId, token }) => token && locks.get(jobId) === token);
    for (const { controller } of running) controller.abort(new LockLost());
    return [...new Set(running.map(({ jobId }) => jobId))];
  }

  /** Aborts the jobs of these chats where they run. */
  abort(chatIds: readonly string[], reason: Error): void {
    const ids = new Set(chatIds);
    for (const { chatId, controller } of this.#active) if (ids.has(chatId)) controller.abort(reason);
  }

  /** Aborts all jobs, and every job that starts from now on. */
  abortAll(reason: Error): void {
    this.#abortedWith = reason;
    for (const { controller } of this.#active) controller.abort(reason);
  }

  #abortUnwanted(): void {
    for (const entry of this.#active) if (this.#isUnwanted(entry)) entry.controller.abort(new Cancelled());
  }

  #isUnwanted({ chatId, user = '', api = '', addedAt = 0 }: RunningJob): boolean {
    const goneAt = this.#goneApis.get(api);
    const isLost = goneAt !== undefined && addedAt <= goneAt;
    return isLost || this.#cancelled.has(chatId) || this.#removedUsers.has(user);
  }
}
