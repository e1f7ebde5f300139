import { Job, type Queue } from 'bullmq';
import { brokenOutcome, decodeOutcome, type Outcome } from '../shared/outcome.js';

/**
 * What the job's record, the truth, says of its outcome: `undefined` while it is not settled or when the record is
 * gone. A job that broke or was given up counts as `internal`.
 */
export async function readOutcome(queue: Queue, jobId: string): Promise<Outcome | undefined> {
  const state = await queue.getJobState(jobId);
  if (state === 'failed') return brokenOutcome;
  if (state !== 'completed') return undefined;
  const job = await Job.fromId(queue, jobId);
  return job === undefined ? undefined : decodeOutcome(job.returnvalue);
}
