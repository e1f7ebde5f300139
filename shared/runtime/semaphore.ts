/** How long to wait for a permit. */
interface AcquireOptions {
  /** How long to wait, in milliseconds. */
  waitMs: number;
  /** Asked when that is over: how many milliseconds to wait longer. 0 or less ends the waiting, as does its absence. */
  extendMs?: () => number;
  /** The error to throw when the waiting ends without a permit. */
  timeoutError: () => Error;
  /** Ends the waiting with its reason when it aborts. */
  signal?: AbortSignal | undefined;
}

/** A counting semaphore with a bounded wait and a fair order. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(permits: number) {
    this.#free = permits;
  }

  /**
   * Runs the work while holding a permit; at once when one is free. Throws the timeout error after the wait, and the
   * reason of the signal if that has aborted before.
   */
  async run<T>(work: () => Promise<T>, options: AcquireOptions): Promise<T> {
    options.signal?.throwIfAborted();
    if (!this.#takeFree()) await this.#wait(options);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #takeFree(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next();
  }

  #wait({ waitMs, extendMs = () => 0, timeoutError, signal }: AcquireOptions): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let timer: NodeJS.Timeout;
    // Leaving the queue and settling are one step: a permit for a caller that has left would be lost.
    const leave = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      this.#waiting.delete(admit);
      settle();
    };
    const admit = () => leave(resolve);
    const abort = () => leave(() => reject(signal?.reason));
    const expire = () => {
      if (!this.#waiting.has(admit)) return;
      const leftMs = extendMs();
      if (leftMs > 0) wait(leftMs);
      else leave(() => reject(timeoutError()));
    };
    const wait = (ms: number) => {
      // When this process itself was too busy, what has arrived meanwhile is handled first and may release a permit.
      timer = setTimeout(() => setImmediate(expire), ms);
    };
    wait(waitMs);
    signal?.addEventListener('abort', abort);
    this.#waiting.add(admit);
    return promise;
  }
}

/** Adds up amounts by key. A key whose amount is zero takes up no memory. */
export class Tally {
  readonly #amounts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(key: string): number {
    return this.#amounts.get(key) ?? 0;
  }

  /** Adds the amount, which may be negative. */
  add(key: string, amount: number): void {
    const sum = this.of(key) + amount;
    if (sum === 0) this.#amounts.delete(key);
    else this.#amounts.set(key, sum);
    this.#total += amount;
  }
}
