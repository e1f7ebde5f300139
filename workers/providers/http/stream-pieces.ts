import type { Dispatcher } from 'undici';

/** The pieces that ended within a chunk, and the size of the one that is open behind it, in bytes. */
type Taken = { ended: number; openBytes: number };

/** Measures a stream as it comes. */
export type StreamMeter = { take(chunk: Buffer): Taken };

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * Counts lines that end, and measures events: a reader holds one until the blank line behind it.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export class LineMeter implements StreamMeter {
  #eventBytes = 0;
  #lineBytes = 0;
  #last = 0;

  take(chunk: Buffer): Taken {
    let [ended, from] = [0, 0];
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      const length = this.#lineBytes + end - from;
      const last = end > from ? chunk[end - 1] : this.#last;
      const isBlank = length === 0 || (length === 1 && last === carriageReturn);
      this.#eventBytes = isBlank ? 0 : this.#eventBytes + length + 1;
      this.#lineBytes = 0;
      ended += 1;
      from = end + 1;
    }
    this.#lineBytes += chunk.length - from;
    this.#last = chunk.at(-1) ?? this.#last;
    return { ended, openBytes: this.#eventBytes + this.#lineBytes };
  }
}

/**
 * Counts the frames of Amazon's event streams that end. The first four bytes of one are its length, which counts from
 * then on: the SDK makes room for all of it. https://smithy.io/2.0/aws/amazon-eventstream.html
 */
export class FrameMeter implements StreamMeter {
  /** The bytes of the open frame's length that are there. */
  #head = Buffer.alloc(0);
  #frameBytes = 0;
  #leftBytes = 0;

  take(chunk: Buffer): Taken {
    let ended = 0;
    for (let rest = chunk; rest.length > 0; ) {
      if (this.#leftBytes === 0) rest = this.#begin(rest);
      const taken = Math.min(this.#leftBytes, rest.length);
      this.#leftBytes -= taken;
      if (taken > 0 && this.#leftBytes === 0) ended += 1;
      rest = rest.subarray(taken);
    }
    return { ended, openBytes: this.#leftBytes > 0 ? this.#frameBytes : this.#head.length };
  }

  /** Takes the length of the next frame, as far as it is there, and gives what comes behind it. */
  #begin(bytes: Buffer): Buffer {
    const head = Buffer.concat([this.#head, bytes.subarray(0, 4 - this.#head.length)]);
    const rest = bytes.subarray(head.length - this.#head.length);
    this.#head = head.length === 4 ? Buffer.alloc(0) : head;
    if (head.length < 4) return rest;
    // No frame is shorter than its prelude and checksums.
    this.#frameBytes = Math.max(16, head.readUInt32BE(0));
    this.#leftBytes = this.#frameBytes - 4;
    return rest;
  }
}

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
