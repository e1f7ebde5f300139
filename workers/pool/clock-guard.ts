import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../shared/runtime/log.js';

/** Knows whether this machine's clock has jumped while the process runs. */
export interface ClockGuard {
  /** True from a jump until the clock agrees with the store's again. */
  readonly isOff: boolean;
  stop(): void;
}

interface ClockGuardDeps {
  /** Resolves when the store can be used, and so when its clock and this machine's agree. */
  check: () => Promise<void>;
  onChange: () => void;
  log: Log;
  /** This machine's clock, in milliseconds since the epoch. */
  now?: () => number;
}

/** As far apart as clocks may be (`shared/queue/stores/clock-skew.ts`). */
const maxJumpMs = 2000;
const intervalMs = 100;
/** Longer than the store takes its last look for a new one. */
const checkPauseMs = 250;

/**
 * Compares the clock with one that never jumps, which needs no trip to the store. To be started while the clock agrees with the
 * store's. After a jump the store decides: a machine that was suspended also jumps, to the right time.
 */
export function createClockGuard({ check, onChange, log, now = Date.now }: ClockGuardDeps): ClockGuard {
  const stopping = new AbortController();
  let offset = now() - performance.now();
  let isOff = false;
  const set = (value: boolean) => {
    isOff = value;
    onChange();
  };
  const untilRight = async () => {
    for (;;) {
      await delay(checkPauseMs, undefined, { signal: stopping.signal });
      const found = now() - performance.now();
      const isRight = await check().then(
        () => true,
        () => false,
      );
      stopping.signal.throwIfAborted();
      if (isRight) return found;
    }
  };
  const look = async () => {
    if (isOff || Math.abs(now() - performance.now() - offset) <= maxJumpMs) return;
    log.warn('the clock has jumped: no jobs are taken until it agrees with the queue store again');
    set(true);
    offset = await untilRight();
    log.info('the clock agrees with the queue store again');
    set(false);
  };
  const timer = setInterval(() => void look().catch(() => undefined), intervalMs);
  return {
    get isOff() {
      return isOff;
    },
    stop: () => {
      clearInterval(timer);
      stopping.abort();
    },
  };
}
