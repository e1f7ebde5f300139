/**
 * Queries that wait for a connection, the oldest first. They wait for as long as others are answered: a busy store is not an
 * unavailable one, and the deadline of a request bounds its wait. When nothing has been answered for `silentMs` they
 * fail, without having been sent.
 */
export class QueryQueue {
  readonly #silentMs: number;
  readonly #waiting = new Set<() => void>();
  #free: number;
  #answeredAt = 0;

  constructor({ concurrency, silentMs }: { concurrency: number; silentMs: number }) {
    this.#free = concurrency;
    this.#silentMs = silentMs;
  }

  async run<T>(query: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await this.#turn();
    else this.#free -= 1;
    try {
      const answer = await query();
      this.#answeredAt = performance.now();
      return answer;
    } finally {
      this.#next();
    }
  }

  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next();
  }

  #turn(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let timer: NodeJS.Timeout;
    const leave = (done: () => void) => {
      clearTimeout(timer);
      this.#waiting.delete(next);
      done();
    };
    const next = () => leave(resolve);
    const look = (afterMs: number) => {
      // Where this process was too busy itself, answers have arrived that it has not looked at: they come first.
      timer = setTimeout(() => setImmediate(judge), afterMs);
    };
    const judge = () => {
      if (!this.#waiting.has(next)) return;
      const leftMs = this.#answeredAt + this.#silentMs - performance.now();
      if (leftMs > 0) look(leftMs);
      else leave(() => reject(new Error('the store answers nothing')));
    };
    look(this.#silentMs);
    this.#waiting.add(next);
    return promise;
  }
}
