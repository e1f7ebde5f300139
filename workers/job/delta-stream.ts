import { randomUUID } from 'node:crypto';
import type { Target } from '../../shared/contracts/contract.js';
import { type Delta, type Mark, type Resend, sliceText } from '../../shared/protocol/parts.js';
import { type ApiLink, type DeltaSource, lengthOf } from './api-link.js';
import type { CallProgress } from './call.js';

/** Characters of a mark that a message surely has room for: a provider's ids may be of any length. */
const maxMarkLength = 50_000;

interface DeltaStreamOptions {
  /** The id of the job's chat, by which its readers know it. */
  jobId: string;
  /** The model that writes the text, if the request names another one. */
  writer?: Target | undefined;
  /** The hints that its call left out, and the changes of its conversation, as far as known by now. */
  facts: () => Pick<CallProgress, 'ignored' | 'changes'> | undefined;
  onClose: () => void;
}

/** The text of one job as far as it has been written: the tape of its reply, with its marks. */
export class DeltaStream {
  /** Another run of the job writes another text. */
  readonly callId = randomUUID().slice(0, 8);
  readonly options: DeltaStreamOptions;
  readonly marks: Mark[] = [];
  readonly #cursors = new Map<string, Cursor>();
  #text = '';
  #isHeld = false;

  constructor(options: DeltaStreamOptions) {
    this.options = options;
  }

  get text(): string {
    return this.#text;
  }

  /** Whether a part of the text may have been read. */
  get hasBegun(): boolean {
    return this.#text !== '';
  }

  /** Informs readers of an earlier run of the job that another text begins. */
  announceRestart(): void {
    for (const cursor of this.#cursors.values()) cursor.link.report(cursor);
  }

  /** The mark is that of the part which begins with the text. */
  append(text: string, mark?: Mark): void {
    // Readers find a part that no message can carry, and what follows it, in the outcome.
    this.#isHeld ||= mark !== undefined && lengthOf(mark) > maxMarkLength;
    if (this.#isHeld) return;
    if (mark) this.marks.push(mark);
    const isUrgent = !this.hasBegun;
    this.#text += text;
    for (const cursor of this.#cursors.values()) cursor.link.send(cursor, { isUrgent });
  }

  /** Sends the text from that place on to the reader at this API process, `max` characters of it at most. */
  place(link: ApiLink, { reader, from, max }: Pick<Resend, 'reader' | 'from' | 'max'>): Cursor {
    const key = keyOf(link.api, reader);
    const cursor = this.#cursors.get(key) ?? new Cursor(this, link, reader);
    this.#cursors.set(key, cursor);
    cursor.move(from, max);
    return cursor;
  }

  remove(api: string, reader: string | undefined): void {
    const key = keyOf(api, reader);
    const cursor = this.#cursors.get(key);
    cursor?.link.forget(cursor);
    this.#cursors.delete(key);
  }

  /** A reader finds the unsent rest in the outcome. */
  [Symbol.dispose](): void {
    this.options.onClose();
    for (const cursor of this.#cursors.values()) cursor.link.forget(cursor);
    this.#cursors.clear();
  }
}

const keyOf = (api: string, reader: string | undefined): string => `${api} ${reader ?? ''}`;

/** How far one reader has been sent the text. */
class Cursor implements DeltaSource {
  readonly link: ApiLink;
  readonly #stream: DeltaStream;
  readonly #reader: string | undefined;
  #at = 0;
  /** Where it stops until the reader asks again. */
  #end = Number.POSITIVE_INFINITY;

  constructor(stream: DeltaStream, link: ApiLink, reader: string | undefined) {
    this.link = link;
    this.#stream = stream;
    this.#reader = reader;
    link.attach(this);
  }

  /** A place beyond the text is its end. */
  move(from: number, max = Number.POSITIVE_INFINITY): void {
    this.#at = Math.min(from, this.#stream.text.length);
    this.#end = from + max;
  }

  take(maxLength: number): Delta {
    const at = this.#at;
    const { callId, options } = this.#stream;
    const { jobId, writer } = options;
    const { ignored, changes } = options.facts() ?? {};
    const [length, near] = this.#fit(Math.min(maxLength, this.#end - at), maxLength);
    const text = sliceText(this.#stream.text, at, length);
    this.#at += text.length;
    const marks = near.filter((mark) => mark.at <= this.#at);
    const facts = {
      ...writer,
      ...(marks.length > 0 && { marks }),
      ...(ignored && { ignored: [...ignored] }),
      ...(changes && { changes: [...changes] }),
    };
    return { jobId, reader: this.#reader, callId, ...facts, at, text };
  }

  /** The length of the next piece, and the marks that have room beside it. It ends before a mark without room. */
  #fit(length: number, room: number): [number, Mark[]] {
    const at = this.#at;
    const near = this.#stream.marks.filter((mark) => mark.at >= at && mark.at <= at + length);
    let left = room;
    for (const [place, mark] of near.entries()) {
      const leftWithIt = left - lengthOf(mark);
      if (leftWithIt < mark.at - at + 2) return [Math.min(mark.at - at, left), near.slice(0, place)];
      left = leftWithIt;
    }
    return [Math.min(length, left), near];
  }

  get hasMore(): boolean {
    return sliceText(this.#stream.text, this.#at, Math.min(2, this.#end - this.#at)) !== '';
  }
}
