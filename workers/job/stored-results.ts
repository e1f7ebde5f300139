import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../../shared/failures.js';
import { brokenOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import {
  decodeStoredResult,
  encodeStoredResult,
  resultKey,
  resultTimeoutMs,
} from '../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import { Cancelled } from './active-jobs.js';

/** The outcome of one stored chat: whoever records one first decides, and everyone else goes by it. */
export interface StoredResult {
  /**
   * What the chat has ended as already; undefined when it has not, or when the store does not say in time, which is
   * never later than `deadline`, in milliseconds since the epoch.
   */
  find(deadline: number): Promise<Outcome | undefined>;
  /** Records the outcome and gives the one that counts: this, or another that was there before. */
  settle(outcome: Outcome): Promise<Outcome>;
}

/** Where the pool finds and leaves the outcomes of stored chats. */
export interface StoredResults {
  /** Undefined for an ordinary job. Both functions throw only what has ended the job without a verdict. */
  of(job: EndingJob, stop?: AbortSignal): StoredResult | undefined;
}

/** A job, as far as its end goes. */
interface EndingJob {
  id?: string | undefined;
  keptUntil?: number | undefined;
}

interface StoredResultsDeps {
  records: RecordStore;
  log: Log;
  /** The clock of the deadlines, in milliseconds since the epoch. */
  now?: () => number;
  /** How long an outcome waits for a store that is away, in milliseconds. */
  patienceMs?: number;
}

export function createStoredResults({
  records,
  log,
  now = Date.now,
  patienceMs = resultTimeoutMs,
}: StoredResultsDeps): StoredResults {
  const read = async (jobId: string): Promise<Outcome | undefined> => {
    const text = await records.read(resultKey(jobId));
    return text === undefined ? undefined : readable(text, () => log.warn({ jobId }, 'outcome unreadable'));
  };
  return {
    of: ({ id: jobId = '', keptUntil }, stop = new AbortController().signal) => {
      if (keptUntil === undefined) return undefined;
      const patiently = <T>(call: () => Promise<T>, giveUpAt: number, without: T): Promise<T> =>
        whileAway(call, { giveUpAt, now, stop }).catch((err: unknown) => {
          throwIfLost(stop);
          log.warn({ err, jobId }, 'stored result unavailable');
          return without;
        });
      return {
        find: (deadline) => patiently(() => read(jobId), Math.min(now() + patienceMs, deadline), undefined),
        settle: (outcome) => {
          const value = encodeStoredResult(outcome, now());
          const write = async (): Promise<Outcome> => {
            const ttlMs = Math.max(1, Math.ceil(keptUntil - now()));
            if (await records.create(resultKey(jobId), { value, ttlMs })) return outcome;
            return (await read(jobId)) ?? outcome;
          };
          return patiently(write, now() + patienceMs, outcome);
        },
      };
    },
  };
}

/** The chat has ended, even if a newer release wrote down how. */
function readable(text: string, onUnreadable: () => void): Outcome {
  try {
    return decodeStoredResult(text).outcome;
  } catch {
    onUnreadable();
    return brokenOutcome;
  }
}

const pauseMs = 250;

/** Tries again while the store is away; once the job has been told to end, no more than one time. */
async function whileAway<T>(
  call: () => Promise<T>,
  { giveUpAt, now, stop }: { giveUpAt: number; now: () => number; stop: AbortSignal },
): Promise<T> {
  for (;;) {
    throwIfLost(stop);
    try {
      return await call();
    } catch (error) {
      if (stop.aborted || now() >= giveUpAt) throw error;
      await delay(pauseMs, undefined, { signal: stop }).catch(() => undefined);
    }
  }
}

/** A job that was ended for any other reason than these two is no longer ours: nothing of it may be written. */
function throwIfLost({ aborted, reason }: AbortSignal): void {
  if (aborted && !(reason instanceof Cancelled) && !(reason instanceof Failure)) throw reason;
}
