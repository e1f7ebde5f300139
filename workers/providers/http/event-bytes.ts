import type { Dispatcher } from 'undici';

/** A connection that can wait until what came over it has been read. */
type PausableSource = Pick<Dispatcher.DispatchController, 'pause' | 'resume' | 'abort'>;

/**
 * The bytes of a stream of events, as an async iterable or by the reader of a web stream, which itself would cost
 * several times as much. When much of it is unread, the connection waits.
 */
export class EventBytes implements AsyncIterableIterator<Buffer> {
  readonly #source: PausableSource;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #reading: PromiseWithResolvers<IteratorResult<Buffer>> | undefined;
  #end: { error?: Error | undefined } | undefined;

  constructor(source: PausableSource) {
    this.#source = source;
  }

  /** Bytes that are all there. */
  static of(bytes: Buffer): EventBytes {
    const whole = new EventBytes({ pause: () => {}, resume: () => {}, abort: () => {} });
    whole.push(bytes);
    whole.end();
    return whole;
  }

  push(chunk: Buffer): void {
    if (this.#reading) return void this.#settle(({ resolve }) => resolve({ done: false, value: chunk }));
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes >= maxUnreadBytes) this.#source.pause();
  }

  end(error?: Error): void {
    this.#end ??= { error };
    this.#settle(({ resolve, reject }) => (error ? reject(error) : resolve(ended)));
  }

  /** All that has come since the last time, or else what comes next. */
  next(): Promise<IteratorResult<Buffer>> {
    if (this.#unread.length > 0) return Promise.resolve({ done: false, value: this.#takeUnread() });
    if (this.#end) return this.#end.error ? Promise.reject(this.#end.error) : Promise.resolve(ended);
    this.#reading = Promise.withResolvers();
    return this.#reading.promise;
  }

  async return(): Promise<IteratorResult<Buffer>> {
    if (!this.#end) this.#source.abort(new Error('The stream was not read to its end.'));
    return ended;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  getReader() {
    return { read: () => this.next(), cancel: () => this.return(), releaseLock: () => {} };
  }

  #settle(settle: (reading: PromiseWithResolvers<IteratorResult<Buffer>>) => void): void {
    const reading = this.#reading;
    this.#reading = undefined;
    if (reading) settle(reading);
  }

  #takeUnread(): Buffer {
    const chunks = this.#unread;
    this.#unread = [];
    this.#unreadBytes = 0;
    this.#source.resume();
    return Buffer.concat(chunks);
  }
}

const maxUnreadBytes = 65_536;

const ended = { done: true, value: undefined } as const;
