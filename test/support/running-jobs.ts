import type { ProviderId } from '../../shared/contracts/contract.js';
import { DeltaStream } from '../../workers/job/delta-stream.js';
import { type JobListener, type QueuedJob, RunningJob } from '../../workers/job/running-job.js';

interface TakenJob extends Partial<QueuedJob> {
  provider?: ProviderId;
  token?: string;
  now?: () => number;
  /** Aborts the job. */
  stop?: AbortSignal;
  listeners?: readonly JobListener[];
}

/** A job as a worker takes it; one that is not named has an id of its own. */
export function takeJob(options: TakenJob = {}): RunningJob {
  const { provider = 'openai', token = 'token', now = Date.now, stop } = options;
  const { listeners = [], ...given } = options;
  const queued = {
    id: 'job',
    name: 'chat',
    timestamp: now(),
    attemptsStarted: 1,
    stalledCounter: 0,
    data: {},
    ...given,
  };
  const job = new RunningJob({ provider, queued, token, now, listeners });
  const abort = () => job.abort(stop?.reason);
  if (stop?.aborted) abort();
  stop?.addEventListener('abort', abort);
  return job;
}

/** The stream of a job that no API process reads. */
export const openStream = (): DeltaStream =>
  new DeltaStream({ jobId: 'job', facts: () => undefined, onClose: () => {} });
