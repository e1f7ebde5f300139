import type { Config } from '../shared/config/config.js';
import type { Stages } from './stages.js';

interface StartReportOptions {
  stages: Stages;
  config: Pick<Config, 'DATA_DIR' | 'DATABASE_URL' | 'REDIS_URL'>;
  /** Time for requests in flight during a stop, in milliseconds. */
  stopWithinMs: number;
}

/**
 * The progress of `npm start`: its stages until everything runs, then that it stops, and where the data is. A failed
 * start reports the reason only.
 */
export class StartReport {
  readonly #options: StartReportOptions;
  #state: 'starting' | 'up' | 'failed' | 'stopping' = 'starting';

  constructor(options: StartReportOptions) {
    this.#options = options;
  }

  /** Ignored once it is stopping: a stage may still be under way then. */
  begin(stage: string): void {
    if (this.#state === 'starting') this.#options.stages.begin(stage);
  }

  up(): void {
    this.#state = 'up';
    this.#options.stages.succeed();
  }

  failed(): void {
    this.#state = 'failed';
    this.#options.stages.fail();
  }

  stopping(): void {
    if (this.#state === 'failed') return;
    const seconds = Math.ceil(this.#options.stopWithinMs / 1000);
    const grace = this.#state === 'up' ? `; requests in flight have up to ${seconds} s` : '';
    this.#options.stages.turnTo(`Stopping${grace}`);
    this.#state = 'stopping';
  }

  stopped(): void {
    if (this.#state !== 'stopping') return;
    const { DATA_DIR, DATABASE_URL, REDIS_URL } = this.#options.config;
    const data = `the data is in ${DATABASE_URL ? 'your PostgreSQL (DATABASE_URL)' : `${DATA_DIR}/`}`;
    const queue = REDIS_URL ? ', the queue in your Redis (REDIS_URL)' : '';
    this.#options.stages.succeed(`Stopped; ${data}${queue}. The next start continues with it.`);
  }
}
