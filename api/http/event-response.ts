import { once } from 'node:events';
import type { Response as HttpResponse } from 'express';
import { Failure } from '../../shared/failures.js';
import { withTimeout } from '../../shared/runtime/retry.js';

/** How often a comment is sent, because proxies and clients close connections without traffic. */
const commentIntervalMs = 15_000;
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

/**
 * A response of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). It is kept alive
 * by comments once it has begun; until then it can still become an ordinary one.
 */
export class EventResponse {
  readonly #response: HttpResponse;
  #comments: NodeJS.Timeout | undefined;

  constructor(response: HttpResponse) {
    this.#response = response;
    response.once('close', () => clearInterval(this.#comments));
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
    // One line end: some clients make an event without data of a blank line, and fail at it (openai-go before its pull
    // request 621; openai-python 2722, once an event had an id).
    const comment = () => {
      if (!response.writableNeedDrain) response.write(': still there\n');
    };
    this.#comments = setInterval(comment, commentIntervalMs);
    return true;
  }

  /** False when the client has not read what was sent before, or is gone. */
  send({ id, event, data }: ServerSentEvent): boolean {
    if (this.#response.destroyed) return false;
    const lines = [
      ...(id === undefined ? [] : [`id: ${id}`]),
      ...(event === undefined ? [] : [`event: ${event}`]),
      `data: ${data.replaceAll(otherLineEnds, escaped)}`,
    ];
    return this.#response.write(`${lines.join('\n')}\n\n`);
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
    clearInterval(this.#comments);
    if (this.#response.writableNeedDrain) this.#response.destroy();
    else if (event) this.end(event);
    else this.#response.end();
  }

  end(event: ServerSentEvent): void {
    // The client may read the end slowly, and a comment after it would raise an unhandled error.
    clearInterval(this.#comments);
    this.send(event);
    this.#response.end();
  }
}
