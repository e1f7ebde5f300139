import type { Response as HttpResponse } from 'express';
import type { Failure } from '../../../shared/failures.js';
import type { Mark } from '../../../shared/protocol/parts.js';
import type { Completion } from '../../chat/chat-result.js';
import type { ReplySource } from '../../chat/reply-stream.js';
import { EventResponse } from '../../http/event-response.js';
import type { ReplySink } from '../serve.js';
import { stopDetailsOf, toErrorEvent } from './anthropic-error.js';
import { type MessageEvent, MessageEvents, type MessageHead } from './message-events.js';

/** Clients give up after 300 s without a byte, and proxies sooner; comments count for some of them alone. */
const sign = { event: 'ping', data: '{"type":"ping"}' };
/** Until then a failure can have a status, by which clients know best whether to try again; in milliseconds. */
const earlyBeginMs = 25_000;

interface MessageStreamOptions {
  response: HttpResponse;
  /** Asked when the message begins: until then the chat may turn out to be another one's. */
  head: () => MessageHead;
  /** The headers of the answer, for as far as its writer is known. */
  headers: (source: ReplySource) => Record<string, string>;
}

/** A reply as Anthropic's events. The message begins with the first part, so that what it says is true. */
export class MessageStream implements ReplySink {
  readonly #events: EventResponse;
  #message: MessageEvents | undefined;

  constructor(private readonly options: MessageStreamOptions) {
    const headers = () => options.headers({});
    this.#events = new EventResponse(options.response, { sign, begin: { afterMs: earlyBeginMs, headers } });
  }

  get hasBegun(): boolean {
    return this.#events.hasBegun;
  }

  begin(source: ReplySource = {}): void {
    if (!this.#events.hasBegun) this.#events.begin(this.options.headers(source));
    this.#message ??= new MessageEvents(this.options.head(), (event) => this.#send(event));
  }

  mark(mark: Mark): void {
    this.#message?.mark(mark);
  }

  write(text: string): boolean {
    this.begin();
    return this.#message?.write(text) ?? false;
  }

  drained(): Promise<void> {
    return this.#events.drained();
  }

  done(completion: Completion): void {
    this.begin();
    this.#message?.done(completion);
    this.#events.close();
  }

  fail(failure: Failure): void {
    const details = stopDetailsOf(failure);
    if (details) return void this.refuse(details);
    const event = toErrorEvent(failure, this.options.head().id);
    this.#events.end({ event: 'error', data: JSON.stringify(event) });
  }

  /** Ends a reply that its provider has withheld, which is none of its failures here. */
  refuse(details: object): void {
    this.begin();
    this.#message?.refused(details);
    this.#events.close();
  }

  #send(event: MessageEvent): boolean {
    return this.#events.send({ event: event.type, data: JSON.stringify(event) });
  }
}
