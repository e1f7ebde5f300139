import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';

interface ClockGuardDeps {
  /** Resolves when the store is available, and so when its clock and this machine's agree. */
  check: () => Promise<void>;
  onChange: () => void;
  log: Log;
  /** This machine's clock, in milliseconds since the epoch. */
  now?: () => number;
  /** How often the clocks are compared, in milliseconds. */
  everyMs?: number;
  /** How long to wait before each check after a jump, in milliseconds. */
  checkPauseMs?: number;
}

/** Clocks may be so far apart (`shared/queue/stores/clock-skew.ts`). */
const maxJumpMs = 2000;
const intervalMs = 100;
/** Longer than the store reuses the result of a check. */
const defaultCheckPauseMs = 250;

/**
 * Notices when this machine's clock jumps while the process runs, by comparing it with a monotonic one, which needs no
 * round trip to the store. After a jump the store decides: a machine that was suspended also jumps, to the right time.
 */
export class ClockGuard {
  readonly #deps: Required<ClockGuardDeps>;
  readonly #stopping = new AbortController();
  #offset = 0;
  #isOff = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: ClockGuardDeps) {
    this.#deps = { now: Date.now, everyMs: intervalMs, checkPauseMs: defaultCheckPauseMs, ...deps };
  }

  /** True from a jump until the clock agrees with the store's again. */
  get isOff(): boolean {
    return this.#isOff;
  }

  /** To be called while the clock agrees with the store's. */
  start(): void {
    this.#offset = this.#readOffset();
    this.#timer = setInterval(() => void this.#check().catch(() => undefined), this.#deps.everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopping.abort();
  }

  async #check(): Promise<void> {
    if (this.#isOff || Math.abs(this.#readOffset() - this.#offset) <= maxJumpMs) return;
    const { log } = this.#deps;
    log.warn('the clock has jumped: no jobs are taken until it agrees with the queue store again');
    this.#set(true);
    this.#offset = await this.#untilRight();
    log.info('the clock agrees with the queue store again');
    this.#set(false);
  }

  /** The offset with which the store agrees. */
  async #untilRight(): Promise<number> {
    const { signal } = this.#stopping;
    const { checkPauseMs } = this.#deps;
    await delay(checkPauseMs, undefined, { signal });
    const checkOffset = async () => {
      const offset = this.#readOffset();
      await this.#deps.check();
      signal.throwIfAborted();
      return offset;
    };
    return retry(checkOffset, { pauseMs: checkPauseMs, signal });
  }

  #set(isOff: boolean): void {
    this.#isOff = isOff;
    this.#deps.onChange();
  }

  #readOffset(): number {
    return this.#deps.now() - performance.now();
  }
}
