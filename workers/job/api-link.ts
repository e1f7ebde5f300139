import { setImmediate as nextTurn } from 'node:timers/promises';
import { topics } from '../../shared/protocol/messages.js';
import type { Delta, Mark, WrittenDeltas } from '../../shared/protocol/parts.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';

export interface ApiLinkDeps {
  relay: Pick<Relay, 'send'>;
  /** Deltas that come within this time share a message to each API process, in milliseconds. */
  windowMs: number;
  log: Log;
}

/** How far one reader has been sent a text. */
export interface DeltaSource {
  readonly hasMore: boolean;
  /** Gives the next piece, of so many UTF-16 units at most with its marks, which then counts as sent. */
  take(maxLength: number): Delta;
}

/** Characters in one message: with every escape, six bytes each, it stays within what the relay takes. */
const maxMessageChars = 80_000;
/** The size of a delta beside its text, in such characters. */
const envelopeChars = 20;

/** Characters that a mark takes in a message. */
export const lengthOf = (mark: Mark): number => JSON.stringify(mark).length;

/** One API process. It gets one message at a time, with all deltas since, so that none overtakes another. */
export class ApiLink {
  readonly api: string;
  readonly #deps: ApiLinkDeps;
  readonly #onIdle: () => void;
  readonly #sources = new Set<DeltaSource>();
  /** Sources to be sent even if there is nothing new. */
  readonly #reports = new Set<DeltaSource>();
  readonly #unsent = new Set<DeltaSource>();
  #isPublishing = false;
  #isUrgent = false;
  /** When the last message was begun, by `performance.now()`. */
  #publishedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(api: string, deps: ApiLinkDeps, onIdle: () => void) {
    this.api = api;
    this.#deps = deps;
    this.#onIdle = onIdle;
  }

  /** Keeps the link while the source is open, also one with nothing to send: an API process has one link. */
  attach(source: DeltaSource): void {
    this.#sources.add(source);
  }

  /** Sends what there is when a window has passed since the last message; at once when it is urgent. */
  send(source: DeltaSource, { isUrgent }: { isUrgent: boolean }): void {
    this.#unsent.add(source);
    if (isUrgent) this.#isUrgent = true;
    this.#schedule();
  }

  report(source: DeltaSource): void {
    this.#reports.add(source);
    this.send(source, { isUrgent: true });
  }

  /** The report is still due: a job that began anew may end at once, and its reader has to know. */
  forget(source: DeltaSource): void {
    this.#sources.delete(source);
    if (!this.#reports.has(source)) this.#unsent.delete(source);
    if (this.#sources.size > 0) return;
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
      // A message that comes long after the last one waits for nothing.
      const leftMs = this.#publishedAt + this.#deps.windowMs - performance.now();
      this.#timer = setTimeout(() => void this.#publish(), Math.max(0, leftMs));
    }
  }

  async #publish(): Promise<void> {
    const { relay, log } = this.#deps;
    this.#timer = undefined;
    this.#isPublishing = true;
    this.#publishedAt = performance.now();
    // The deltas of one turn of the event loop share a message.
    await nextTurn();
    this.#isUrgent = false;
    const message = this.#take();
    // The API process notices a lost message at the next delta, or at the end.
    if (message.deltas.length > 0)
      await relay
        .send(topics.deltas(this.api), message)
        .catch((err) => log.debug({ err }, 'deltas not published'));
    this.#isPublishing = false;
    this.#schedule();
  }

  #take(): WrittenDeltas {
    const deltas: Delta[] = [];
    let room = maxMessageChars;
    for (const source of this.#unsent) {
      this.#unsent.delete(source);
      const delta = source.take(room);
      const isReport = this.#reports.delete(source);
      if (delta.text !== '' || isReport) {
        deltas.push(delta);
        room -= delta.text.length + envelopeChars;
        for (const mark of delta.marks ?? []) room -= lengthOf(mark);
      }
      if (source.hasMore) this.#unsent.add(source);
      // At least a whole character fits.
      else if (room >= 2) continue;
      this.#isUrgent = this.#unsent.size > 0;
      break;
    }
    return { v: writtenVersion, deltas };
  }
}
