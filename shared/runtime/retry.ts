import { setTimeout as delayFor } from 'node:timers/promises';
import pRetry, { type Options } from 'p-retry';
import { givenFields } from '../json/json.js';

/** When to try again; without `maxTries` and `maxMs` there is no end but success and the signal. */
export interface RetryOptions {
  /** The first pause between two tries, in milliseconds. */
  pauseMs: number;
  /** With it the pauses double, up to this many milliseconds; without it all are equal. */
  maxPauseMs?: number;
  /** Multiplies each pause by a random factor from 1 to 2, so that processes do not retry at the same moment. */
  randomize?: boolean;
  /** How often the work is tried at most, the first time included. */
  maxTries?: number;
  /** No pause goes on for longer than this after the start, in milliseconds; one last try follows. */
  maxMs?: number;
  /** Ends the retrying, also amid a pause. The first try is made in any case. */
  signal?: AbortSignal;
  /** False for an error that trying again does not mend. */
  shouldRetry?: (error: unknown) => boolean;
  /** Called before the pause, for each failure after which the work is tried again. */
  onFailure?: (error: unknown) => void;
  /** With it a pause does not keep the process alive. */
  unref?: boolean;
}

/**
 * For a command to the queue's store that does nothing when it was executed before: a lost connection is back within
 * half a second.
 */
export const retryBriefly = { pauseMs: 50, maxMs: 700 };

/** Gives the result of the work, tried again after any error. Throws its last error, never the signal's reason. */
export async function retry<T>(work: () => T | Promise<T>, options: RetryOptions): Promise<Awaited<T>> {
  const tried: { last?: Promise<Awaited<T>> } = {};
  const tryOnce = async () => {
    const trying = (async (): Promise<Awaited<T>> => await work())();
    tried.last = trying;
    await trying.catch((error: unknown) => {
      throw new FailedTry(error);
    });
  };
  await pRetry(tryOnce, optionsOfPRetry(options)).catch((error: unknown) => {
    if (!(error instanceof FailedTry || options.signal?.aborted)) throw error;
  });
  if (tried.last === undefined) throw new TypeError('the work was not tried');
  return tried.last;
}

/** p-retry repeats only after an `Error`, and after few `TypeError`s, so it sees this one in place of all. */
class FailedTry extends Error {
  override readonly name = 'FailedTry';

  constructor(readonly error: unknown) {
    super('the work failed');
  }
}

function optionsOfPRetry(options: RetryOptions): Options {
  const { pauseMs, maxPauseMs, maxTries = Number.POSITIVE_INFINITY, maxMs, signal } = options;
  const { randomize = false, unref = false } = options;
  // Without a try p-retry rejects when the signal has aborted already.
  if (signal?.aborted) return { retries: 0 };
  return {
    retries: maxTries - 1,
    minTimeout: pauseMs,
    factor: maxPauseMs === undefined ? 1 : 2,
    ...givenFields({ maxTimeout: maxPauseMs, maxRetryTime: maxMs, signal }),
    randomize,
    unref,
    // It is asked last, when nothing else ends the retrying.
    shouldRetry: ({ error }) => {
      const failure = error instanceof FailedTry ? error.error : error;
      if (options.shouldRetry?.(failure) === false) return false;
      options.onFailure?.(failure);
      return true;
    },
  };
}

/** A store that has not answered by then counts as down, in milliseconds. */
export const storeTimeoutMs = 2500;

/** Gives the result of the work, or the error of `tooLate` after `ms` milliseconds; the work itself goes on. */
export function withTimeout<T>(ms: number, work: Promise<T>, tooLate = noAnswer): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(tooLate()), ms);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

const noAnswer = (): Error => new Error('no answer in time');

/** Waits a second at most for what is being closed: a store that is down may never answer. Never rejects. */
export const closedInTime = async (closing: Promise<unknown>): Promise<void> =>
  void (await withTimeout(1000, closing).catch(() => undefined));

interface SingleFlightOptions {
  apartMs: number;
  /** Waits for so many milliseconds. */
  delay?: (ms: number) => Promise<unknown>;
}

/**
 * Shares one run of the work among all callers that ask during it. Runs begin at least `apartMs` milliseconds apart,
 * and a caller in between waits for the next, so the load does not grow with the number of callers.
 */
export function singleFlight<T>(
  work: () => Promise<T>,
  { apartMs, delay = delayFor }: SingleFlightOptions,
): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  let notBefore = 0;
  const run = async (): Promise<T> => {
    const earlyMs = notBefore - performance.now();
    if (earlyMs > 0) await delay(earlyMs);
    notBefore = performance.now() + apartMs;
    return work();
  };
  return () => {
    underWay ??= run().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
