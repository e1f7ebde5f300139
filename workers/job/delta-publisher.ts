import { randomUUID } from 'node:crypto';
import type { Target } from '../../shared/contract.js';
import { type Delta, type Resend, sliceText } from '../../shared/protocol/deltas.js';
import { type ChatJob, versionOf } from '../../shared/protocol/messages.js';
import type { Mark } from '../../shared/protocol/parts.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { ApiLink, type ApiLinkDeps, lengthOf } from './api-link.js';
import type { RunningJob } from './running-job.js';
import type { RunningJobs } from './running-jobs.js';

interface DeltaPublisherDeps extends ApiLinkDeps {
  /** Those of this process. */
  jobs: Pick<RunningJobs, 'ofChat'>;
}

/**
 * Sends the replies that this process writes, piece by piece, to the API processes where they are read. Its memory is
 * the only place that has an unfinished text, so a reader who lacks a part of it asks here (`resend`).
 */
export class DeltaPublisher {
  readonly #deps: DeltaPublisherDeps;
  readonly #links = new Map<string, ApiLink>();

  constructor(deps: DeltaPublisherDeps) {
    this.#deps = deps;
  }

  /** The stream of a job's reply, to be disposed of; `writer` is its model, if the request names another one. */
  open(job: RunningJob, chat: StreamedChat, writer?: Target): DeltaStream {
    const stream = new DeltaStream(job, writer, versionOf(chat));
    job.deltas = stream;
    stream.place(this.#linkTo(chat.replyTo), { from: 0 });
    return stream;
  }

  /** Sends the text from `from` on to the reader, or nothing more if it has left. Ignores jobs that do not run here. */
  onResend({ jobId, api, left, ...place }: Resend): void {
    const stream = this.#deps.jobs.ofChat(jobId).findLast(({ deltas }) => deltas)?.deltas;
    if (left) stream?.remove(api, place.reader);
    if (left || stream === undefined) return;
    const link = this.#linkTo(api);
    // Also if there is nothing new: the reader learns of which call the text is, and how far it has got.
    link.report(stream.place(link, place));
  }

  #linkTo(api: string): ApiLink {
    const link = this.#links.get(api) ?? new ApiLink(api, this.#deps, () => this.#links.delete(api));
    this.#links.set(api, link);
    return link;
  }
}

type StreamedChat = Pick<ChatJob, 'replyTo' | 'turns' | 'parameters'>;

/** Characters of a mark that a message surely has room for: a provider's ids may be of any length. */
const maxMarkLength = 50_000;

/** The text of one job as far as it has been written: the tape of its reply, with its marks. */
export class DeltaStream {
  /** Another run of the job writes another text. */
  readonly callId = randomUUID().slice(0, 8);
  readonly jobId: string;
  readonly writer: Target | undefined;
  /** That of the messages that it travels in. */
  readonly version: number;
  readonly marks: Mark[] = [];
  readonly #job: RunningJob;
  readonly #cursors = new Map<string, Cursor>();
  #text = '';
  #isHeld = false;

  constructor(job: RunningJob, writer: Target | undefined, version: number = writtenVersion) {
    this.#job = job;
    this.jobId = job.chatId;
    this.writer = writer;
    this.version = version;
  }

  /** Those of the request's hints that the model refuses. */
  get ignored(): Delta['ignored'] {
    const { ignored } = this.#job.progress ?? {};
    return ignored && [...ignored];
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

  /** Has the reader at this API process get the text from there on, `max` characters of it. */
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
    this.#job.deltas = undefined;
    for (const cursor of this.#cursors.values()) cursor.link.forget(cursor);
    this.#cursors.clear();
  }
}

const keyOf = (api: string, reader: string | undefined): string => `${api} ${reader ?? ''}`;

/** How far one reader has been sent the text. */
export class Cursor {
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

  get version(): number {
    return this.#stream.version;
  }

  /** The next piece, of so many UTF-16 units at most with its marks, which then counts as sent. */
  take(maxLength: number): Delta {
    const at = this.#at;
    const { jobId, callId, writer, ignored } = this.#stream;
    const [length, near] = this.#fit(Math.min(maxLength, this.#end - at), maxLength);
    const text = sliceText(this.#stream.text, at, length);
    this.#at += text.length;
    const marks = near.filter((mark) => mark.at <= this.#at);
    const facts = { ...writer, ...(marks.length > 0 && { marks }), ...(ignored && { ignored }) };
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
