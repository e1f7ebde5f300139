import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Delta, type DeltasMessage, type Resend, sliceText } from '../../shared/protocol/deltas.js';
import { topics } from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';

interface DeltaPublisherDeps {
  relay: Pick<Relay, 'publish'>;
  /** Deltas that come within this time share a message to each API process, in milliseconds. */
  windowMs: number;
  log: Log;
}

/** Characters in one message: with every escape, six bytes each, it stays within what the relay takes. */
const maxMessageChars = 80_000;
/** What a delta takes up beside its text, in such characters. */
const envelopeChars = 20;

/**
 * Sends the replies that this process writes, piece by piece, to the API processes where they are read. Its memory is the only place
 * that has an unfinished text, so an API process that lacks a part of it asks here (`resend`).
 */
export class DeltaPublisher {
  readonly #deps: DeltaPublisherDeps;
  readonly #streams = new Map<string, DeltaStream>();
  readonly #readers = new Map<string, Reader>();

  constructor(deps: DeltaPublisherDeps) {
    this.#deps = deps;
  }

  /** The jobs whose replies are being written. */
  get jobIds(): string[] {
    return [...this.#streams.keys()];
  }

  /** The stream of a job that a worker has taken, read by this API process; to be disposed of when the job has ended. */
  open(jobId: string, replyTo: string): DeltaStream {
    const stream = new DeltaStream(jobId, () => {
      if (this.#streams.get(jobId) === stream) this.#streams.delete(jobId);
    });
    this.#streams.set(jobId, stream);
    stream.resend(this.#readerAt(replyTo), 0);
    return stream;
  }

  /** Sends the text from there on to the API process that asks; does nothing for a job that does not run here. */
  onResend({ jobId, api, from, max }: Resend): void {
    const stream = this.#streams.get(jobId);
    if (stream === undefined) return;
    const reader = this.#readerAt(api);
    stream.resend(reader, from, max);
    reader.report(stream);
  }

  #readerAt(api: string): Reader {
    const reader = this.#readers.get(api) ?? new Reader(api, this.#deps, () => this.#readers.delete(api));
    this.#readers.set(api, reader);
    return reader;
  }
}

/** The text of one job as far as it has been written. */
export class DeltaStream {
  /** Another run of the job writes another text. */
  readonly callId = randomUUID().slice(0, 8);
  readonly jobId: string;
  readonly #onClose: () => void;
  /** How much of the text each has been sent, and how much it takes before it asks again. */
  readonly #sentTo = new Map<Reader, { at: number; end: number }>();
  #text = '';

  constructor(jobId: string, onClose: () => void) {
    this.jobId = jobId;
    this.#onClose = onClose;
  }

  /** Whether somebody may have seen a part of the text. */
  get hasBegun(): boolean {
    return this.#text !== '';
  }

  /** Informs whoever has read an earlier run of the job that another text begins. */
  announceRestart(): void {
    for (const reader of this.#sentTo.keys()) reader.report(this);
  }

  append(text: string): void {
    const isFirst = !this.hasBegun;
    this.#text += text;
    for (const reader of this.#sentTo.keys()) reader.send(this, { isUrgent: isFirst });
  }

  /**
   * Has the reader get the text from there on; a place beyond the text is its end. Never less than it was to get already: one API
   * process may have several clients who read it, each at a place of its own.
   */
  resend(reader: Reader, from: number, max = Number.POSITIVE_INFINITY): void {
    reader.attach(this);
    const { at } = this.#sentTo.get(reader) ?? { at: from };
    this.#sentTo.set(reader, { at: Math.min(at, from, this.#text.length), end: from + max });
  }

  /** The next piece for this reader, which then counts as sent. */
  take(reader: Reader, maxLength: number): Delta {
    const { jobId, callId } = this;
    const { at, end } = this.#placeOf(reader);
    const text = sliceText(this.#text, at, Math.min(maxLength, end - at));
    this.#sentTo.set(reader, { at: at + text.length, end });
    return { jobId, callId, at, text };
  }

  /** Whether there is more for this reader. */
  hasMore(reader: Reader): boolean {
    const { at, end } = this.#placeOf(reader);
    return sliceText(this.#text, at, Math.min(2, end - at)) !== '';
  }

  #placeOf(reader: Reader): { at: number; end: number } {
    return this.#sentTo.get(reader) ?? { at: this.#text.length, end: this.#text.length };
  }

  /** What a reader has not been sent it finds in the outcome. */
  [Symbol.dispose](): void {
    this.#onClose();
    for (const reader of this.#sentTo.keys()) reader.forget(this);
    this.#sentTo.clear();
  }
}

/** One API process: gets one message at a time, so that none overtakes another, with all that has gathered meanwhile. */
class Reader {
  readonly #api: string;
  readonly #deps: DeltaPublisherDeps;
  readonly #onIdle: () => void;
  readonly #streams = new Set<DeltaStream>();
  /** Those that have to be sent even if there is nothing new. */
  readonly #reports = new Set<DeltaStream>();
  readonly #unsent = new Set<DeltaStream>();
  #isPublishing = false;
  #isUrgent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(api: string, deps: DeltaPublisherDeps, onIdle: () => void) {
    this.#api = api;
    this.#deps = deps;
    this.#onIdle = onIdle;
  }

  /** Also a stream that has nothing to send yet: nobody else may become the reader at this API process meanwhile. */
  attach(stream: DeltaStream): void {
    this.#streams.add(stream);
  }

  /** Sends what there is of the stream within the window; at once when it is urgent. */
  send(stream: DeltaStream, { isUrgent }: { isUrgent: boolean }): void {
    this.#unsent.add(stream);
    if (isUrgent) this.#isUrgent = true;
    this.#schedule();
  }

  /** Sends at once of which call the stream is and how far it has got, even if there is nothing new. */
  report(stream: DeltaStream): void {
    this.#reports.add(stream);
    this.send(stream, { isUrgent: true });
  }

  /** What is to be reported still is: a job that was begun anew may end at once, and its reader has to know. */
  forget(stream: DeltaStream): void {
    this.#streams.delete(stream);
    if (!this.#reports.has(stream)) this.#unsent.delete(stream);
    if (this.#streams.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#onIdle();
  }

  #schedule(): void {
    if (this.#isPublishing || this.#unsent.size === 0) return;
    if (this.#isUrgent) {
      clearTimeout(this.#timer);
      void this.#publish();
    } else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => void this.#publish(), this.#deps.windowMs);
    }
  }

  async #publish(): Promise<void> {
    const { relay, log } = this.#deps;
    this.#timer = undefined;
    this.#isPublishing = true;
    // The deltas of one turn of the event loop share a message.
    await nextTurn();
    this.#isUrgent = false;
    const deltas = this.#take();
    const message: DeltasMessage = { v: writtenVersion, deltas };
    // What is lost the API process notices at the next delta, or at the end.
    if (deltas.length > 0)
      await relay
        .publish(topics.deltas(this.#api), message)
        .catch((err) => log.debug({ err }, 'deltas not published'));
    this.#isPublishing = false;
    this.#schedule();
  }

  #take(): Delta[] {
    const deltas: Delta[] = [];
    let room = maxMessageChars;
    for (const stream of this.#unsent) {
      this.#unsent.delete(stream);
      const delta = stream.take(this, room);
      const isReport = this.#reports.delete(stream);
      if (delta.text !== '' || isReport) {
        deltas.push(delta);
        room -= delta.text.length + envelopeChars;
      }
      if (stream.hasMore(this)) this.#unsent.add(stream);
      // At least a whole character fits.
      if (room >= 2) continue;
      this.#isUrgent = this.#unsent.size > 0;
      break;
    }
    return deltas;
  }
}
