import { Semaphore } from '../../runtime/semaphore.js';

/**
 * Bounds the queries under way to the connections of a pool. A query waits for as long as others are answered. When no
 * answer has come for `silentMs` milliseconds, the waiting queries fail without having been sent.
 */
export class QueryQueue {
  readonly #connections: Semaphore;
  readonly #silentMs: number;
  #answeredAt = 0;

  constructor({ concurrency, silentMs }: { concurrency: number; silentMs: number }) {
    this.#connections = new Semaphore(concurrency);
    this.#silentMs = silentMs;
  }

  run<T>(query: () => Promise<T>): Promise<T> {
    const send = async () => {
      const answer = await query();
      this.#answeredAt = performance.now();
      return answer;
    };
    return this.#connections.run(send, {
      waitMs: this.#silentMs,
      extendMs: () => this.#answeredAt + this.#silentMs - performance.now(),
      timeoutError: () => new Error('the store answers nothing'),
    });
  }
}
