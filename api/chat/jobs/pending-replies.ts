import type { ProviderId } from '../../../shared/contract.js';
import type { Attempt } from '../../../shared/protocol/attempts.js';
import { jobRecordTtlMs } from '../../../shared/protocol/messages.js';
import { nextOf, type Outcome } from '../../../shared/protocol/outcome.js';

/** A chat that somebody waits for, and the attempt that is under way. */
export interface PendingJob extends Pick<Attempt, 'provider' | 'model' | 'attempt' | 'fallback'> {
  /** Id of the chat, and of its first job. */
  readonly jobId: string;
  /** Whether it belongs to a stored chat, whose outcome has a record of its own. */
  readonly isStored?: boolean;
}

/** One caller's wait for a job. */
export interface Wait {
  /** The outcome, or `undefined` when the deadline passes or the caller leaves first. */
  readonly outcome: Promise<Outcome | undefined>;
  leave(): void;
  /** Registers what to do, at most once, when the store does not know the job; to be called once its add was confirmed. */
  onLost(reEnqueue: () => void): void;
}

interface Waiter {
  job: PendingJob;
  /** When the wait began, in milliseconds since the epoch. */
  readonly since: number;
  /** Which of the `backgroundSlots` polls includes it; a wait in the foreground is in every poll. */
  readonly pollSlot: number | undefined;
  readonly settle: (outcome: Outcome | undefined) => void;
  reEnqueue?: (() => void) | undefined;
  /** When the store last knew the job, in milliseconds since the epoch. */
  lastSeenAt?: number;
}

/** The record of a job that has ended still exists after this time: a little less than its lifetime. */
const recordAliveMs = jobRecordTtlMs - 10_000;
/** Within this time a worker has ended a cancelled job and published its outcome, in milliseconds. */
const cutMs = 1000;
/** A background wait is polled once in this many polls; the waits are spread over them, so that none is a burst. */
const backgroundSlots = 15;

/** Where requests wait for the outcome of their job. Several may wait for one job, and each is settled exactly once. */
export class PendingReplies {
  readonly #now: () => number;
  readonly #waitersByJob = new Map<string, Set<Waiter>>();
  #onMove: ((jobId: string, provider: ProviderId) => void) | undefined;
  #backgroundWaits = 0;

  /** `now` is the clock of the deadlines, in milliseconds since the epoch. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Waits until the deadline at the latest, in milliseconds since the epoch. */
  wait(job: PendingJob, deadline: number): Wait {
    return this.#wait(job, deadline, undefined);
  }

  /**
   * Waits for a job that goes on without a request, until the deadline at the latest, and resolves with its outcome, if there is one by then; at
   * once, with `joined`, when it is waited for in the background already. If the message with the outcome is lost, it may notice a little later than `wait`.
   */
  async waitInBackground(job: PendingJob, deadline: number): Promise<Outcome | 'joined' | undefined> {
    const others = [...this.#waitersOf(job.jobId)];
    if (others.some(({ pollSlot }) => pollSlot !== undefined)) return 'joined';
    return this.#wait(job, deadline, this.#backgroundWaits++ % backgroundSlots).outcome;
  }

  /** As `waitInBackground`, for a job that is cancelled or past its deadline: it ends soon, if a worker has it. */
  waitForCut(job: PendingJob): Promise<Outcome | 'joined' | undefined> {
    return this.waitInBackground(job, this.#now() + cutMs);
  }

  #wait(job: PendingJob, deadline: number, pollSlot: number | undefined): Wait {
    const { promise, resolve } = Promise.withResolvers<Outcome | undefined>();
    const since = this.#now();
    const leave = () => waiter.settle(undefined);
    const timer = setTimeout(leave, Math.max(0, deadline - since));
    const waiter: Waiter = {
      job,
      since,
      pollSlot,
      settle: (outcome) => {
        clearTimeout(timer);
        this.#remove(waiter);
        resolve(outcome);
      },
    };
    this.#insert(waiter);
    const onLost = (reEnqueue: () => void) => {
      waiter.reEnqueue = reEnqueue;
      waiter.lastSeenAt = this.#now();
    };
    return { outcome: promise, leave, onLost };
  }

  /** Settles everyone who waits for this chat, or has them wait for the attempt that follows. */
  settle(jobId: string, outcome: Outcome): void {
    const next = nextOf(outcome);
    if (next) this.moveOn(jobId, next);
    else for (const waiter of this.#waitersOf(jobId)) waiter.settle(outcome);
  }

  /** Has everyone who waits for this chat wait for the attempt that follows. */
  moveOn(jobId: string, next: Attempt): void {
    const moved = [...this.#waitersOf(jobId)].filter((waiter) => advance(waiter, next));
    if (moved.length > 0) this.#onMove?.(jobId, next.provider);
  }

  /** Sets what is called when a chat that somebody waits for has been passed on to this provider. */
  onMove(listener: (jobId: string, provider: ProviderId) => void): void {
    this.#onMove = listener;
  }

  /** Records that the store knew this job at this time, in milliseconds since the epoch. */
  recordSeen(jobId: string, lastSeenAt: number): void {
    for (const waiter of this.#waitersOf(jobId)) waiter.lastSeenAt = lastSeenAt;
  }

  /**
   * Reports that the store did not know this job when asked at `askedAt`, in milliseconds since the epoch; true when one of those who
   * wait adds it again. Nobody does when it has been seen since, or its add confirmed; nor when it was last seen so long ago that it
   * may have ended since, and its record expired.
   */
  markLost(jobId: string, askedAt: number): boolean {
    const since = this.#now() - recordAliveMs;
    const ready = [...this.#waitersOf(jobId)].filter(
      ({ reEnqueue, lastSeenAt = 0 }) =>
        reEnqueue !== undefined && lastSeenAt > since && lastSeenAt <= askedAt,
    );
    for (const waiter of ready) {
      waiter.reEnqueue?.();
      waiter.reEnqueue = undefined;
    }
    return ready.length > 0;
  }

  /** The job of this id, if somebody waits for it. */
  find(jobId: string): PendingJob | undefined {
    const [waiter] = this.#waitersOf(jobId);
    return waiter?.job;
  }

  /**
   * The jobs that somebody waits for. With `since` (milliseconds since the epoch) only those whose wait began before it. With
   * `pollSlot`, which counts the polls, jobs that only background waits are for come up once in `backgroundSlots` polls.
   */
  pending({
    since = Number.POSITIVE_INFINITY,
    pollSlot,
  }: {
    since?: number;
    pollSlot?: number;
  } = {}): PendingJob[] {
    const isDue = (waiter: Waiter) =>
      pollSlot === undefined ||
      waiter.pollSlot === undefined ||
      waiter.pollSlot === pollSlot % backgroundSlots;
    const waiters = [...this.#waitersByJob.values()].flatMap((waiters) => [...waiters]);
    const due = waiters.filter((waiter) => waiter.since < since && isDue(waiter));
    return [...new Map(due.map(({ job }) => [job.jobId, job])).values()];
  }

  #waitersOf(jobId: string): ReadonlySet<Waiter> {
    return this.#waitersByJob.get(jobId) ?? none;
  }

  #insert(waiter: Waiter): void {
    const { jobId } = waiter.job;
    this.#waitersByJob.set(jobId, (this.#waitersByJob.get(jobId) ?? new Set()).add(waiter));
  }

  #remove(waiter: Waiter): void {
    const { jobId } = waiter.job;
    const waiters = this.#waitersByJob.get(jobId);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waitersByJob.delete(jobId);
  }
}

/** False when it waits for that one already: messages may come late. Whoever adds the job again knows the first attempt alone. */
function advance(waiter: Waiter, next: Attempt): boolean {
  const { jobId, isStored, attempt = 1 } = waiter.job;
  if ((next.attempt ?? 1) <= attempt) return false;
  waiter.job = { ...next, jobId, ...(isStored !== undefined && { isStored }) };
  waiter.reEnqueue = undefined;
  return true;
}

const none: ReadonlySet<Waiter> = new Set();
