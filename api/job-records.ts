import { setTimeout as delay } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import type { ProviderId } from '../shared/contract.js';
import type { Log } from '../shared/log.js';
import { brokenOutcome, decodeOutcome, type Outcome } from '../shared/outcome.js';
import type { AwaitedJob, WaitingRoom } from './waiting-room.js';

/** The jobs' records, which are the truth about their outcomes, looked at for everyone who waits. */
export interface JobRecords {
  /** Settles the waiters of those of these jobs that have an outcome. */
  look(jobs: AwaitedJob[]): Promise<void>;
  /** Looks no more. */
  stop(): void;
}

interface RecordsDeps {
  queueOf: (provider: ProviderId) => Queue;
  waitingRoom: WaitingRoom;
  log: Log;
}

/** Every waiter's record is looked at this often, in case its telling was lost. */
const lookIntervalMs = 1000;
/** Records asked for at once. */
const lookBatch = 100;

/** Looks once a second, and not again before the last look has ended. */
export function watchJobRecords({ queueOf, waitingRoom, log }: RecordsDeps): JobRecords {
  const stopping = new AbortController();
  const { signal } = stopping;
  const look = async (jobs: AwaitedJob[]) => {
    for (let start = 0; start < jobs.length; start += lookBatch) {
      const batch = jobs.slice(start, start + lookBatch).map(async ({ provider, jobId }) => {
        const outcome = await readOutcome(queueOf(provider), jobId);
        if (outcome) waitingRoom.settle(jobId, outcome);
      });
      await Promise.all(batch).catch((err) => log.debug({ err }, 'records could not be read'));
    }
  };
  const watch = async () => {
    while (!signal.aborted) {
      await delay(lookIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) await look(waitingRoom.waiting({ since: Date.now() - lookIntervalMs }));
    }
  };
  void watch();
  return { look, stop: () => stopping.abort() };
}

/**
 * What a job's record says of its outcome: `undefined` while it is not settled or when the record is gone. A job that
 * broke or was given up counts as `internal`.
 */
export async function readOutcome(queue: Queue, jobId: string): Promise<Outcome | undefined> {
  const state = await queue.getJobState(jobId);
  if (state === 'failed') return brokenOutcome;
  if (state !== 'completed') return undefined;
  const job = await Job.fromId(queue, jobId);
  return job === undefined ? undefined : readable(job.returnvalue);
}

/** The outcome as a worker wrote it down; one that cannot be read is a job that broke. */
export function readable(outcome: unknown): Outcome {
  try {
    return decodeOutcome(outcome);
  } catch {
    return brokenOutcome;
  }
}
