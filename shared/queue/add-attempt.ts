import type { Queue } from 'bullmq';
import { type Attempt, jobIdOf } from '../protocol/attempts.js';
import { type ChatJobPayload, jobRecordTtlMs } from '../protocol/messages.js';
import { chatKey, decodeStoredChat, encodeStoredChat } from '../protocol/stored-chat.js';
import type { QueueStore } from './queue-store.js';

const removal = { age: jobRecordTtlMs / 1000 };

interface NewJob {
  readonly jobId: string;
  readonly payload: ChatJobPayload;
  /** The result of `priorityOf`. */
  readonly priority: number;
}

/** Adds a job to the queue of its provider; does nothing when the queue knows its id. */
export async function addJob(
  queue: Queue<ChatJobPayload>,
  { now }: Pick<QueueStore, 'now'>,
  { jobId, payload, priority }: NewJob,
): Promise<void> {
  const options = { jobId, timestamp: now(), removeOnComplete: removal, removeOnFail: removal, priority };
  await queue.add('chat', payload, options);
}

/** The job of an attempt that has failed, and the attempt that follows it. */
export interface FollowedJob {
  readonly chatId: string;
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
  { chatId, payload, priority, next }: FollowedJob,
): Promise<void> {
  if (payload.keptUntil !== undefined) await recordCurrent(store, chatId, next);
  const { model, fallback, earlier, ...same } = payload;
  const job = { jobId: jobIdOf(chatId, next.attempt), payload: { ...same, ...next, chatId }, priority };
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
