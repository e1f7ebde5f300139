import type { Job } from 'bullmq';
import type { ChatJobPayload } from '../../shared/protocol/messages.js';
import type { Log } from '../../shared/runtime/log.js';

/** Characters of a conversation that justify a command of their own; shorter ones stay with the job's record. */
const longConversation = 16_384;

/** The conversation of a job that has ended is not read again, and thousands of long ones would fill the store. */
export function dropLongConversation(job: Job<ChatJobPayload>, log: Log): void {
  const turns: unknown = job.data?.turns;
  if (typeof turns !== 'string' || turns.length < longConversation) return;
  const dropped = job.updateData({ ...job.data, turns: '[]' });
  dropped.catch((err) => log.debug({ err, jobId: job.id }, 'conversation not dropped'));
}
