import { promptCanary } from '../../support/canaries.js';
import type { ChatReply, Deployment } from '../../support/deployment.js';
import {
  type OpenStream,
  openStream,
  type StreamCall,
  type StreamEvent,
} from '../../support/event-streams.js';
import type { Entry } from './balance.js';
import type { Asked, Requests } from './requests.js';

/** A stream on its way, and its reader, who can hang up. */
export interface AskedStream extends Omit<Asked, 'reply'> {
  /** The events so far. */
  readonly seen: StreamSeen;
  /** Resolves at the first delta; rejects when the stream ends without one. */
  readonly begun: Promise<void>;
  /** The end: the data of `done`, that of `error` as if it were a response of its own, or a plain problem. */
  readonly end: Promise<StreamEnd>;
}

/** The end of a stream; `begun` tells an event of it from a plain problem. */
export type StreamEnd = ChatReply & { readonly begun: boolean };

/** All that a reader has seen of a stream. */
export class StreamSeen {
  /** The deltas joined. */
  text = '';
  lastEventId: string | undefined;
  /** Its errors in every case, such as two ends, a gap, or two texts in one. */
  readonly flaws: string[] = [];
  readonly #from: { callId: string | undefined; offset: number };
  #end: StreamEvent | undefined;

  constructor(lastEventId: string | undefined) {
    const [callId, offset] = lastEventId?.split('.') ?? [];
    this.#from = { callId, offset: Number(offset ?? 0) };
  }

  get end(): StreamEvent | undefined {
    return this.#end;
  }

  add(event: StreamEvent): void {
    if (this.#end) this.flaws.push(`${event.event} after ${this.#end.event}`);
    if (event.event === 'delta') this.#addDelta(event);
    else this.#addEnd(event);
  }

  #addDelta({ id = '', data }: StreamEvent): void {
    const [callId, offset] = id.split('.');
    this.#from.callId ??= callId;
    this.text += data.delta;
    this.lastEventId = id;
    if (callId !== this.#from.callId) this.flaws.push('the texts of two calls');
    if (Number(offset) !== this.#from.offset + this.text.length)
      this.flaws.push(`${id} is not where it should be`);
  }

  #addEnd(event: StreamEvent): void {
    this.#end = event;
    if (event.event !== 'done' && event.event !== 'error') this.flaws.push(`an event ${event.event}`);
    if (event.event === 'done' && event.data.response.slice(this.#from.offset) !== this.text)
      this.flaws.push('the deltas are not the response');
  }
}

/** Asks for streams in a case's books. */
export function createStreams(requests: Requests, deployment: Pick<Deployment, 'url'>) {
  return (call: Partial<StreamCall> = {}): AskedStream => {
    const { entry, signal, arrived, ...caller } = requests.enter(call.model);
    const seen = new StreamSeen(call.headers?.['Last-Event-ID']);
    const begun = Promise.withResolvers<void>();
    const messages = [{ content: promptCanary }];
    const opening = openStream({ url: deployment.url, messages, ...call, model: caller.model, signal });
    const end = read(opening, seen, begun.resolve);
    end.then(() => begun.reject(new Error('ended without a delta')), begun.reject);
    begun.promise.catch(() => undefined);
    requests.settle(
      entry,
      end.finally(() => noteFlaws(entry, seen)),
    );
    return { ...caller, seen, begun: begun.promise, end, arrived: (after) => arrived(end, after) };
  };
}

async function read(opening: Promise<OpenStream>, seen: StreamSeen, onBegun: () => void): Promise<StreamEnd> {
  const startedAt = performance.now();
  const { response, events } = await opening;
  const { status, headers } = response;
  const ended = (status: number, body: StreamEnd['body'], begun: boolean): StreamEnd => {
    return { status, headers, body, tookMs: performance.now() - startedAt, begun };
  };
  if (status !== 200) return ended(status, (await response.json()) as StreamEnd['body'], false);
  for (let next = await events.next(); !next.done; next = await events.next()) {
    seen.add(next.value);
    if (seen.text !== '') onBegun();
  }
  const { end } = seen;
  if (end === undefined) throw new Error('the connection ended without an end of the stream');
  return ended(end.event === 'done' ? 200 : 500, end.data, true);
}

/** The simulator's numbered deltas are always the beginning of the same text. */
function noteFlaws(entry: Entry, { text, flaws }: StreamSeen): void {
  const found = [...flaws];
  const isNumbered =
    /^sim-(stream|gate|cut|stall|unfinished|malformed)-/.test(entry.model) && text.startsWith('1');
  if (isNumbered && !numbersUpTo(text.length).startsWith(text)) found.push('not the text of the provider');
  entry.flaws = found;
}

/** The beginning of "1 2 3 …", at least this long. */
export function numbersUpTo(length: number): string {
  let text = '1';
  for (let n = 2; text.length < length; n += 1) text += ` ${n}`;
  return text;
}
