import { once } from 'node:events';
import type { Response as HttpResponse } from 'express';
import { Failure } from '../../shared/failures.js';
import { withTimeout } from '../../shared/runtime/retry.js';

/** How often a sign of life is sent, because proxies and clients close connections without traffic. */
const signIntervalMs = 15_000;
/**
 * One line end: some clients make an event without data of a blank line, and fail at it (openai-go before its pull
 * request 621; openai-python 2722, once an event had an id).
 */
const comment = ': still there\n';
/** How long a client may leave sent data unread, in milliseconds. */
const stalledMs = 20_000;

/** The media type of server-sent events. */
export const eventStreamType = 'text/event-stream';

/** Calls the listener when the response begins as a stream of events; never for any other response. */
export function onEventsBegun(response: HttpResponse, listener: () => void): void {
  response.once(begun, listener);
}

const begun = Symbol('events begun');

/**
 * Ends of lines for readers built on Python's `str.splitlines`, beside those that JSON escapes in any case:
 * https://docs.python.org/3/library/stdtypes.html#str.splitlines
 */
const otherLineEnds = /[\u0085\u2028\u2029]/g;
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** An event; its data is one line of JSON, or of ASCII. */
export interface ServerSentEvent {
  readonly id?: string | undefined;
  readonly event?: string;
  readonly data: string;
}

/** The ways in which a response of events is kept alive while there is nothing to send. */
export interface Silence {
  /** Sent every 15 s once the response has begun; absent means a comment, which some clients do not count. */
  readonly sign?: ServerSentEvent;
  /** Begins the response with a sign of life when nothing else has by then; absent means that nothing does. */
  readonly begin?: EarlyBegin;
}

/** A begin before there is anything to send. It fixes the status: a failure after it can only be an event. */
interface EarlyBegin {
  readonly afterMs: number;
  /** Asked when the time has come. */
  readonly headers: () => Record<string, string>;
}

/**
 * A response of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). It is kept alive
 * by signs of life once it has begun; until then it can still become an ordinary one.
 */
export class EventResponse {
  readonly #response: HttpResponse;
  readonly #sign: string;
  /** Runs until the early begin, and from the begin to the end every 15 s. */
  #timer: NodeJS.Timeout | undefined;

  constructor(response: HttpResponse, { sign, begin }: Silence = {}) {
    this.#response = response;
    this.#sign = sign ? toText(sign) : comment;
    if (begin && !response.destroyed) this.#timer = setTimeout(() => this.#beginEarly(begin), begin.afterMs);
    response.once('close', () => clearTimeout(this.#timer));
  }

  get hasBegun(): boolean {
    return this.#response.headersSent;
  }

  /** Sends the headers; false when they were sent before, or the client has left. */
  begin(headers: Record<string, string>): boolean {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return false;
    response.writeHead(200, {
      'Content-Type': `${eventStreamType}; charset=utf-8`,
      // Otherwise nginx buffers the events.
      'X-Accel-Buffering': 'no',
      ...headers,
    });
    response.emit(begun);
    clearTimeout(this.#timer);
    this.#timer = setInterval(() => this.#showLife(), signIntervalMs);
    return true;
  }

  /** False when the client has not read what was sent before, or is gone. */
  send(event: ServerSentEvent): boolean {
    if (this.#response.destroyed) return false;
    return this.#response.write(toText(event));
  }

  /** Resolves when the client has read what it was sent; one that reads nothing for long is disconnected. */
  async drained(): Promise<void> {
    const response = this.#response;
    const left = new AbortController();
    const leave = () => left.abort();
    response.once('close', leave);
    try {
      if (response.writableNeedDrain)
        await withTimeout(stalledMs, once(response, 'drain', { signal: left.signal }));
    } catch (cause) {
      response.destroy();
      throw new Failure('timeout', { cause });
    } finally {
      response.off('close', leave);
      left.abort();
    }
  }

  /** Ends the response, after this event if there is one; a client that has not read the rest is disconnected. */
  close(event?: ServerSentEvent): void {
    clearInterval(this.#timer);
    if (this.#response.writableNeedDrain) this.#response.destroy();
    else if (event) this.end(event);
    else this.#response.end();
  }

  end(event: ServerSentEvent): void {
    // The client may read the end slowly, and a sign of life after it would raise an unhandled error.
    clearInterval(this.#timer);
    this.send(event);
    this.#response.end();
  }

  /** The sign takes the headers along, which Node keeps back until there is a body. */
  #beginEarly({ headers }: EarlyBegin): void {
    // Another answer may be under way to a client that reads it slowly.
    if (!this.hasBegun && this.begin(headers())) this.#showLife();
  }

  #showLife(): void {
    if (!this.#response.writableNeedDrain) this.#response.write(this.#sign);
  }
}

function toText({ id, event, data }: ServerSentEvent): string {
  const lines = [
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(event === undefined ? [] : [`event: ${event}`]),
    `data: ${data.replaceAll(otherLineEnds, escaped)}`,
  ];
  return `${lines.join('\n')}\n\n`;
}
