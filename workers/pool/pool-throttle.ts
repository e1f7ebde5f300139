import { setTimeout as delay } from 'node:timers/promises';
import type { Worker, WorkerOptions } from 'bullmq';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import type { Gate } from '../gate/gate.js';
import type { Load } from '../job/running-jobs.js';
import type { LiveSettings } from './live-settings.js';

interface PoolThrottleDeps {
  worker: Pick<Worker, 'concurrency' | 'pause' | 'resume'> & {
    readonly opts: Pick<WorkerOptions, 'limiter'>;
  };
  settings: Pick<LiveSettings, 'current'>;
  gate: Pick<Gate, 'account' | 'parked'>;
  load: () => Pick<Load, 'inFlight'>;
  clock: Pick<ClockGuard, 'isOff'>;
}

/**
 * Decides whether a pool takes jobs, and how many at once; nothing else pauses or resumes its worker. A pool takes no
 * jobs while operators have paused it, nor while the breaker of its account is open, so that a worker elsewhere gets
 * them, nor while its clock is off: locks in PostgreSQL are timed by it. To probe, it takes one job at a time, beside
 * calls that have been hanging since before the breaker opened. For each parked job it takes another.
 */
export class PoolThrottle {
  readonly #deps: PoolThrottleDeps;
  #isDue = false;

  constructor(deps: PoolThrottleDeps) {
    this.#deps = deps;
  }

  get isTaking(): boolean {
    const { settings, gate, clock } = this.#deps;
    return settings.current.intake !== 'paused' && gate.account.state !== 'open' && !clock.isOff;
  }

  /** Jobs at once at this moment, not counting parked ones. */
  get concurrency(): number {
    const { settings, gate, load } = this.#deps;
    const { state, isProbing } = gate.account;
    if (state !== 'half-open') return settings.current.concurrency;
    return Math.max(1, load().inFlight - gate.parked + (isProbing ? 0 : 1));
  }

  /**
   * To be called after a change of the settings, the breaker or the clock, and when a job has ended while the breaker
   * probes. `pause` and `resume` make a new concurrency effective at once instead of when the next job ends. A paused
   * worker looks for no abandoned jobs; it does so first when it resumes.
   */
  apply(): void {
    const { worker } = this.#deps;
    this.#applyLimits();
    void worker.pause(true);
    if (this.isTaking) void worker.resume();
  }

  /** To be called before the worker runs for the first time: one that is paused then waits to be resumed. */
  applyFirst(): void {
    this.#applyLimits();
    if (!this.isTaking) void this.#deps.worker.pause(true);
  }

  /** To be called when a job was parked or unparked; applies all changes of this turn of the event loop at once. */
  applySoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.apply();
    });
  }

  /** The queue's own rate is in the store, which can be wiped; the worker's counts in the same place. */
  #applyLimits(): void {
    const { worker, settings, gate } = this.#deps;
    const { rate } = settings.current;
    worker.concurrency = this.concurrency + gate.parked;
    if (rate) worker.opts.limiter = { max: rate.max, duration: rate.durationMs };
    else delete worker.opts.limiter;
  }
}

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
