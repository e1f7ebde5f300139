import type { Config } from '../shared/config/config.js';
import type { Stages } from './stages.js';

interface StartReportOptions {
  stages: Stages;
  config: Pick<Config, 'DATA_DIR' | 'DATABASE_URL' | 'REDIS_URL'>;
  /** How long requests in flight may take when it stops. */
  stopWithinMs: number;
}

/**
 * What `npm start` says of itself: its stages until all is up, that it stops, and where the data is then. A start that
 * fails says why, and nothing of stopping.
 */
export class StartReport {
  readonly #options: StartReportOptions;
  #state: 'starting' | 'up' | 'failed' | 'stopping' = 'starting';

  constructor(options: StartReportOptions) {
    this.#options = options;
  }

  /** What was begun before may still go on for a while when it is told to stop. */
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
