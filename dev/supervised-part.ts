/** How often a part is started again in the time below; it is given up at the next death. */
const maxRestarts = 3;
const windowMs = 60_000;

/** One run of a part of `npm start`: a program, or PostgreSQL. */
export interface Run {
  /** Resolves when it can serve; rejects when it ends before. */
  readonly ready: Promise<unknown>;
  /** Resolves with the reason and its log when it ends, whether it was stopped or not. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

interface SupervisedPartOptions {
  name: string;
  start: () => Run;
  /** Once it is aborted, a part that ends is left alone. */
  stopping: AbortSignal;
  /** Shows the user a line. */
  say: (line: string) => void;
  now?: () => number;
}

/** A part of `npm start`, which runs from the beginning, and is started again when it dies. */
export class SupervisedPart {
  readonly #options: SupervisedPartOptions;
  #run: Run;
  #restarts: number[] = [];

  constructor(options: SupervisedPartOptions) {
    this.#options = options;
    this.#run = options.start();
  }

  /** The latest run. */
  get run(): Run {
    return this.#run;
  }

  /** Stops the latest run, also one that is still starting. */
  stop(): Promise<void> {
    return this.#run.stop();
  }

  /** Starts the part again whenever it dies. Resolves with the reason when it is given up, or ends while stopping. */
  async keepRunning(): Promise<string> {
    const { name, start, stopping, say, now = Date.now } = this.#options;
    const sayItRuns = () => {
      if (!stopping.aborted) say(`${name} runs again.`);
    };
    for (;;) {
      const reason = await this.#run.ended;
      if (stopping.aborted) return reason;
      const diedAt = now();
      this.#restarts = this.#restarts.filter((at) => at > diedAt - windowMs);
      if (this.#restarts.length === maxRestarts)
        return `${reason}. It was started again three times in the minute before.`;
      this.#restarts.push(diedAt);
      say(`${reason}. Starting it again.`);
      try {
        this.#run = start();
      } catch (error) {
        return `${reason}. It cannot be started again: ${error instanceof Error ? error.message : 'failed'}.`;
      }
      this.#run.ready.then(sayItRuns, () => undefined);
    }
  }
}
