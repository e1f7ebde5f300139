import type { Log } from './log.js';

type Release = () => Promise<void> | void;

/**
 * The resources a program has opened. Each is registered with its release on the line that opens it; `close` runs the releases
 * once, in reverse order, and continues when one fails.
 */
export class Lifecycle {
  readonly #releases: { name: string; release: Release }[] = [];
  readonly #stopping = new AbortController();
  #closing: Promise<void> | undefined;

  /** Aborts when closing begins, before anything is closed. */
  readonly stopping = this.#stopping.signal;

  constructor(private readonly log: Log) {}

  /** Registers a resource with its release and returns it; one that is opened during closing is closed at once. */
  opened<T>(name: string, resource: T, release: (resource: T) => Promise<void> | void): T {
    this.#releases.push({ name, release: () => release(resource) });
    if (this.#closing) this.#closing = this.#closing.then(() => this.#closeAll());
    return resource;
  }

  /** Closes everything, last opened first. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  /** Also waits for resources that are opened during closing. */
  async #closeToTheEnd(): Promise<void> {
    let closing: Promise<void> | undefined;
    while (closing !== this.#closing || closing === undefined) {
      closing = this.close();
      await closing;
    }
  }

  async #closeAll(): Promise<void> {
    this.#stopping.abort();
    for (let last = this.#releases.pop(); last !== undefined; last = this.#releases.pop()) {
      try {
        await last.release();
      } catch (error) {
        this.log.error({ err: error, resource: last.name }, 'could not be closed');
      }
    }
  }

  /**
   * Closes everything and exits 0 on SIGTERM, SIGINT, SIGHUP, or when the parent process ends (the
   * IPC channel closes). Exits 1 when that takes longer than `graceMs`, or after an unexpected error.
   */
  closeOnSignals({ graceMs }: { graceMs: number }): void {
    let exitCode = 0;
    const end = (reason: string) => {
      if (this.stopping.aborted) return;
      this.log.info({ reason }, 'stopping');
      setTimeout(() => process.exit(1), graceMs).unref();
      void this.#closeToTheEnd().then(() => process.exit(exitCode));
    };
    // `on`, not `once`: npm repeats the Ctrl-C of the terminal, and a signal without a listener kills.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, end);
    process.once('disconnect', () => end('parent gone'));
    if (process.connected === false) end('parent gone');
    process.on('uncaughtException', (error) => {
      this.log.fatal({ err: error }, 'unexpected error');
      exitCode = 1;
      end('unexpected error');
    });
  }
}
