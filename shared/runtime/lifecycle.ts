import type { Log } from './log.js';

/**
 * The resources a program has opened. Each is registered with its release on the line that opens it; `close` runs the
 * releases once, in reverse order, and continues when one fails.
 */
export class Lifecycle {
  #resources = new AsyncDisposableStack();
  readonly #stopping = new AbortController();
  #closing: Promise<void> | undefined;

  /** Aborts when closing begins, before anything is closed. */
  readonly stopping = this.#stopping.signal;

  constructor(private readonly log: Log) {}

  /** Registers a resource with its release and returns it; one that is opened during closing is closed at once. */
  opened<T>(name: string, resource: T, release: (resource: T) => Promise<void> | void): T {
    if (this.#resources.disposed) this.#resources = new AsyncDisposableStack();
    this.#resources.defer(async () => {
      try {
        await release(resource);
      } catch (error) {
        this.log.error({ err: error, resource: name }, 'could not be closed');
      }
      // A resource that was opened during this release may need those opened before, which are closed next.
      await this.#resources.disposeAsync();
    });
    if (this.stopping.aborted) void this.close();
    return resource;
  }

  /** Closes everything, last opened first, also what is opened meanwhile. */
  close(): Promise<void> {
    this.#stopping.abort();
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    do {
      await this.#resources.disposeAsync();
      // Later resources lie in a stack of their own.
    } while (!this.#resources.disposed);
    this.#closing = undefined;
  }

  /** Closes everything at a signal or the parent's end, and exits 0; with 1 after `graceMs` or an unexpected error. */
  closeOnSignals({ graceMs }: { graceMs: number }): void {
    let exitCode = 0;
    const end = (reason: string) => {
      if (this.stopping.aborted) return;
      this.log.info({ reason }, 'stopping');
      setTimeout(() => process.exit(1), graceMs).unref();
      // What is being written when the process exits is lost.
      void this.close().then(() => this.log.flush(() => process.exit(exitCode)));
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
