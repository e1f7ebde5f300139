import type { Log } from './log.js';

type Release = () => Promise<void> | void;

/**
 * What a program has opened, and how to close it again. Whatever opens something registers its release on the same
 * line; `close` runs the releases in reverse order, once, and goes on past one that fails.
 */
export class Lifecycle {
  readonly #releases: { name: string; release: Release }[] = [];
  readonly #stopping = new AbortController();
  #closing: Promise<void> | undefined;

  /** Aborts when closing begins, before anything is closed. */
  readonly stopping = this.#stopping.signal;

  constructor(private readonly log: Log) {}

  /** Registers how to close what has just been opened, and gives it back. */
  opened<T>(name: string, resource: T, release: (resource: T) => Promise<void> | void): T {
    this.#releases.push({ name, release: () => release(resource) });
    return resource;
  }

  /** Closes everything, last opened first. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    this.#stopping.abort();
    for (const { name, release } of this.#releases.reverse()) {
      try {
        await release();
      } catch (error) {
        this.log.error({ err: error, resource: name }, 'could not be closed');
      }
    }
  }

  /**
   * Closes everything and exits 0 on SIGTERM, SIGINT, or when the process that started this one is gone (its IPC
   * channel closes). Exits 1 when that takes longer than `graceMs`, or after an unexpected error.
   */
  closeOnSignals({ graceMs }: { graceMs: number }): void {
    const end = (reason: string, exitCode: number) => {
      this.log.info({ reason }, 'stopping');
      setTimeout(() => process.exit(1), graceMs).unref();
      void this.close().then(() => process.exit(exitCode));
    };
    process.once('SIGTERM', () => end('SIGTERM', 0));
    process.once('SIGINT', () => end('SIGINT', 0));
    process.once('disconnect', () => end('parent gone', 0));
    process.once('uncaughtException', (error) => {
      this.log.fatal({ err: error }, 'unexpected error');
      end('unexpected error', 1);
    });
  }
}
