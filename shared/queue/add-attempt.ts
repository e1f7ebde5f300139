import type { Queue } from 'bullmq';
import type { ProviderId } from '../contracts/contract.js';
import { type Attempt, jobIdOf } from '../protocol/attempts.js';
import { type ChatJobPayload, jobRecordTtlMs, queueName } from '../protocol/messages.js';
import { chatKey, decodeStoredChat, encodeStoredChat } from '../protocol/stored-chat.js';
import type { SpanAttributes, TraceSpan } from '../runtime/tracing.js';
import type { QueueStore } from './queue-store.js';

const removal = { age: jobRecordTtlMs / 1000 };

interface NewJob {
  readonly jobId: string;
  /** See `encodeOrigin`. */
  readonly name: string;
  readonly payload: ChatJobPayload;
  /** The result of `priorityOf`. */
  readonly priority: number;
}

/** Adds a job to the queue of its provider; does nothing when the queue knows its id. */
export async function addJob(
  queue: Queue<ChatJobPayload>,
  { now }: Pick<QueueStore, 'now'>,
  { jobId, name, payload, priority }: NewJob,
): Promise<void> {
  const options = { jobId, timestamp: now(), removeOnComplete: removal, removeOnFail: removal, priority };
  await queue.add(name, payload, options);
}

/** The job of an attempt that has failed, and the attempt that follows it. */
export interface FollowedJob {
  readonly chatId: string;
  readonly name: string;
  readonly payload: ChatJobPayload;
  readonly priority: number;
  readonly next: Attempt;
}

/**
 * Adds the job of the attempt that follows. Of a stored chat it is recorded as the current one before, so that a reader
 * finds it there; if this process dies in between, a repeated request adds the job.
 */
export async function addNextAttempt(
  queue: Queue<ChatJobPayload>,
  store: Pick<QueueStore, 'now' | 'records'>,
  { chatId, name, payload, priority, next }: FollowedJob,
): Promise<void> {
  if (payload.keptUntil !== undefined) await recordCurrent(store, chatId, next);
  const { model, fallback, earlier, ...same } = payload;
  const job = { jobId: jobIdOf(chatId, next.attempt), name, payload: { ...same, ...next, chatId }, priority };
  await addJob(queue, store, job);
}

/** A chat without a record has no caller who could come back for it. */
async function recordCurrent(
  { now, records }: Pick<QueueStore, 'now' | 'records'>,
  chatId: string,
  current: Attempt,
): Promise<void> {
  const expected = await records.read(chatKey(chatId));
  if (expected === undefined) return;
  const chat = decodeStoredChat(expected);
  const ttlMs = Math.max(1, Math.ceil(chat.keptUntil - now()));
  await records.replace(chatKey(chatId), { expected, value: encodeStoredChat({ ...chat, current }), ttlMs });
}

/**
 * The order in which a provider's jobs run (decision 21). BullMQ takes jobs without a priority (0) first, then those of
 * priority 1, 2, …; jobs of one priority in the order they were added. Each doubling of a user's outstanding jobs puts
 * the next one a priority further back. Jobs of asynchronous chats come after all jobs that a caller waits for.
 */

/** A user's share: 0 for a user's first outstanding job, 1 for the second, 2 up to the fourth, 3 up to the eighth, … */
export type ShareLevel = number;

/** A turn of a conversation, one of an agent that it has started, or work beside both, such as a title. */
export type JobClass = 'ordinary' | 'subagent' | 'auxiliary';

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

/** The ids of a job in its spans. */
interface SpannedJob {
  readonly id: string | undefined;
  readonly provider: ProviderId;
  /** Id of the chat; absent means the job's. */
  readonly chatId?: string | undefined;
  /** Absent means the first. */
  readonly attempt?: number | undefined;
}

/** The attributes of every span of a job: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/. */
export const describeJob = ({ id, provider, chatId = id, attempt = 1 }: SpannedJob): SpanAttributes => ({
  'messaging.system': 'bullmq',
  'messaging.destination.name': queueName(provider),
  'messaging.message.id': id,
  'messaging.message.conversation_id': chatId,
  'quillgate.attempt': attempt,
});

/** Starts the span of the job's add, which is what the job is a step of. */
export const startSend = (trace: TraceSpan, job: SpannedJob): TraceSpan =>
  trace.start(`send ${queueName(job.provider)}`, {
    kind: 'producer',
    attributes: {
      ...describeJob(job),
      'messaging.operation.name': 'add',
      'messaging.operation.type': 'send',
    },
  });
