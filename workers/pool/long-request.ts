import type { Job } from 'bullmq';
import type { ChatJobPayload } from '../../shared/protocol/messages.js';
import type { Log } from '../../shared/runtime/log.js';

/** Bytes that justify a command of their own; a shorter request stays with the job's record. */
const longRequest = 16_384;

/** The conversation and the tools of a job that has ended are not read again, and would fill the store. */
export function dropLongRequest(job: Job<ChatJobPayload>, log: Log): void {
  // Another release may have written it.
  const { turns, parameters, ...others }: Partial<ChatJobPayload> = job.data ?? {};
  if (lengthOf(turns) + lengthOf(parameters) < longRequest) return;
  const dropped = job.updateData({ ...others, turns: '[]' } as ChatJobPayload);
  dropped.catch((err) => log.debug({ err, jobId: job.id }, 'request not dropped'));
}

const lengthOf = (text: unknown): number => (typeof text === 'string' ? Buffer.byteLength(text) : 0);
