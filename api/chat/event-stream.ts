import { once } from 'node:events';
import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { ChatResponse, ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { recordFailure, requestIdOf, toProblem } from '../http/problem.js';
import { invalidRequest } from '../http/validation.js';
import type { ChatReply } from './chat-command.js';
import type { Completion } from './chat-result.js';
import type { DeltaSink, TextPosition } from './jobs/reply-stream.js';

/** Proxies and clients close connections on which nothing happens for long. */
const commentIntervalMs = 15_000;
/** How long a client may read nothing of what is there for it, in milliseconds. */
const stalledMs = 20_000;

/** Whether the client prefers a stream of events to JSON. It has to name it: ranges such as `text/*` and no `Accept` mean JSON. */
export const acceptsEventStream = (request: HttpRequest): boolean =>
  request.method !== 'HEAD' &&
  /text\/event-stream/i.test(request.get('Accept') ?? '') &&
  request.accepts(['application/json', eventStreamType]) === eventStreamType;

const eventStreamType = 'text/event-stream';

/** The position in a `Last-Event-ID`; throws `invalid_request` for what no event had as its id. */
export function readLastEventId(header: string | undefined): TextPosition | undefined {
  if (header === undefined || header === '') return undefined;
  const [, callId, offset] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(header) ?? [];
  if (callId === undefined)
    throw invalidRequest([{ pointer: 'Last-Event-ID', detail: 'is not the id of an event of a reply' }]);
  return { callId, offset: Number(offset) };
}

/**
 * A reply as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): `delta`s, then `done` or
 * `error`. The response begins with the first of them, so that a chat that fails before has an ordinary problem.
 */
export class EventStream implements DeltaSink {
  readonly #response: HttpResponse;
  readonly #provider: ProviderId;
  #comments: NodeJS.Timeout | undefined;

  constructor(response: HttpResponse, provider: ProviderId) {
    this.#response = response;
    this.#provider = provider;
    response.once('close', () => clearInterval(this.#comments));
  }

  begin(): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    response.writeHead(200, {
      'Content-Type': `${eventStreamType}; charset=utf-8`,
      'X-LLM-Provider': this.#provider,
      // nginx would gather the events.
      'X-Accel-Buffering': 'no',
    });
    const comment = () => {
      if (!response.writableNeedDrain) response.write(': still there\n\n');
    };
    this.#comments = setInterval(comment, commentIntervalMs);
  }

  write(delta: string, { callId, offset }: TextPosition): boolean {
    this.begin();
    return this.#send('delta', { delta }, `${callId}.${offset}`);
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

  /** Ends the stream with the reply, or with what it failed with; throws that when the response has not begun. */
  async end(replying: Promise<ChatReply>): Promise<ChatResponse> {
    try {
      const reply = await replying;
      if (reply.kind === 'completed') this.#done(reply.completion);
    } catch (error) {
      this.#fail(error);
    }
    // Not sent: the response has ended.
    return { response: '' };
  }

  #done({ kind, text, model, usage }: Completion): void {
    this.begin();
    const finishReason = kind === 'ok' ? 'stop' : 'length';
    this.#endWith('done', { response: text, finishReason, provider: this.#provider, model, usage });
  }

  /** An unexpected error is for whoever logs those. */
  #fail(error: unknown): void {
    if (!this.#response.headersSent || !(error instanceof Failure)) throw error;
    recordFailure(this.#response, error);
    this.#endWith('error', toProblem(error, requestIdOf(this.#response)));
  }

  #endWith(event: string, data: object): void {
    // The client may take its time to read the end, and a comment after it would be an error that nobody handles.
    clearInterval(this.#comments);
    this.#send(event, data);
    this.#response.end();
  }

  #send(event: string, data: object, id?: string): boolean {
    if (this.#response.destroyed) return false;
    const lines = [
      ...(id === undefined ? [] : [`id: ${id}`]),
      `event: ${event}`,
      `data: ${JSON.stringify(data)}`,
    ];
    return this.#response.write(`${lines.join('\n')}\n\n`);
  }
}
