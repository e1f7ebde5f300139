import type { Job } from 'bullmq';
import { z } from 'zod';
import type { ProviderId } from '../../shared/contract.js';
import type { ChatJobPayload } from '../../shared/protocol/messages.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Tracing } from '../../shared/runtime/tracing.js';
import type { RunningJob } from '../job/active-jobs.js';
import { JobTrace } from '../job/job-trace.js';
import type { RequeuableJob } from './requeue.js';

/** The part of BullMQ's job that is read. */
export interface QueuedJob extends RequeuableJob {
  data: unknown;
  /** 0 is the most urgent. */
  priority?: number;
  /** How often a worker has taken it. */
  attemptsStarted: number;
}

const withUser = z.object({ user: z.string() });

/** Id of the user whose job it is; the data of a failed job may be anything. */
export const userOf = ({ data }: QueuedJob): { user?: string } => withUser.safeParse(data).data ?? {};

/** Optional, as the job of a first attempt has none: a check that fails takes twenty microseconds. */
const withChatId = z.object({ chatId: z.string().optional() });

/** Id of the chat that the job is an attempt at. */
export const chatIdOf = ({ id = '', data }: QueuedJob): string =>
  withChatId.safeParse(data).data?.chatId ?? id;

const withAddress = z.object({ replyTo: z.string(), keptUntil: z.number().optional() });

/** The user, and the API process that alone waits for the job; any process may be asked for a stored chat. */
export function describeOwner(job: QueuedJob): Partial<Omit<RunningJob, 'chatId'>> {
  const { replyTo, keptUntil } = withAddress.safeParse(job.data).data ?? {};
  const api = keptUntil === undefined ? replyTo : undefined;
  return { ...(job.id !== undefined && { jobId: job.id }), ...userOf(job), api, addedAt: job.timestamp };
}

const withTrace = z.object({ traceparent: z.string().optional(), attempt: z.number().optional() });

interface TraceDeps {
  tracing: Tracing;
  provider: ProviderId;
  now: () => number;
}

/** Starts the part of the chat's trace that is the job's. */
export function startTrace(job: QueuedJob, { tracing, provider, now }: TraceDeps): JobTrace {
  const { id, timestamp, attemptsStarted, data } = job;
  const traced = { id, timestamp, attemptsStarted, provider, chatId: chatIdOf(job) };
  return JobTrace.start(tracing, { ...traced, ...withTrace.safeParse(data).data }, now);
}

/** Characters of a conversation that are worth a command of their own; shorter ones stay as long as the job's record. */
const longConversation = 16_384;

/** The data of a failed job may be anything. */
const withTurns = z.object({ turns: z.string() });

/** Nobody reads the conversation of a job that has ended, and thousands of long ones would fill the store. */
export function dropLongConversation(job: Job<ChatJobPayload>, log: Log): void {
  const { success, data } = withTurns.safeParse(job.data);
  if (!success || data.turns.length < longConversation) return;
  const dropped = job.updateData({ ...job.data, turns: '[]' });
  dropped.catch((err) => log.debug({ err, jobId: job.id }, 'conversation not dropped'));
}
