import type { Queue } from 'bullmq';

/**
 * The order in which a provider's jobs run (decision 21). BullMQ takes jobs without a priority (0) first, then those of
 * priority 1, 2, …; jobs of one priority in the order they were added. Each doubling of a user's outstanding jobs puts
 * the next one a priority further back. Jobs of asynchronous chats come after all jobs that a caller waits for.
 */

/** A user's share: 0 for a user's first outstanding job, 1 for the second, 2 up to the fourth, 3 up to the eighth, … */
export type ShareLevel = number;

/** Reached at 32,769 outstanding jobs of a user. */
export const maxShareLevel: ShareLevel = 16;

/** Leaves room for more levels of jobs that a caller waits for. */
const firstAsyncPriority = 100;

const shareLevels = Array.from({ length: maxShareLevel + 1 }, (_, level) => level);

/** The level of a user's n-th outstanding job, counted from 1. */
export const levelOfNth = (n: number): ShareLevel => Math.min(maxShareLevel, 32 - Math.clz32(n - 1));

/** BullMQ's priority of a job; 0 means none. */
export const priorityOf = (level: ShareLevel, { isAsync }: { isAsync: boolean }): number =>
  isAsync ? firstAsyncPriority + level : level;

/** Waiting jobs by their level. */
export interface WaitingByLevel {
  /** Jobs that a caller waits for. */
  readonly waitedFor: readonly number[];
  /** Jobs of asynchronous chats. */
  readonly async: readonly number[];
}

/** Counts a queue's waiting jobs with one command. Rejects when the store is unavailable. */
export async function countWaiting(queue: Pick<Queue, 'getCountsPerPriority'>): Promise<WaitingByLevel> {
  const kinds = [{ isAsync: false }, { isAsync: true }];
  const priorities = kinds.map((kind) => shareLevels.map((level) => priorityOf(level, kind)));
  const counts = await queue.getCountsPerPriority(priorities.flat());
  const [waitedFor = [], async = []] = priorities.map((its) => its.map((priority) => counts[priority] ?? 0));
  return { waitedFor, async };
}

/** How many jobs wait in all. */
export const countAllWaiting = ({ waitedFor, async }: WaitingByLevel): number =>
  countAll(waitedFor) + countAll(async);

/** How many of these jobs run before a job of this level that is added now. */
export const countUpTo = (byLevel: readonly number[], level: ShareLevel): number =>
  byLevel.slice(0, level + 1).reduce((total, count) => total + count, 0);

/** How many jobs there are at all levels. */
export const countAll = (byLevel: readonly number[]): number => countUpTo(byLevel, maxShareLevel);
