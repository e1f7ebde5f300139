import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { ChatResponse, ProviderId } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';
import type { EndedAttempt } from '../../../shared/protocol/attempts.js';
import { invalidRequest } from '../../../shared/validation.js';
import type { ChatReply } from '../../chat/chat-command.js';
import { answeredBy, type Completion } from '../../chat/chat-result.js';
import { changesHeader } from '../../chat/conversation-changes.js';
import type { DeltaSink, ReplySource, TextPosition } from '../../chat/reply-stream.js';
import { EventResponse, eventStreamType } from '../../http/event-response.js';
import { recordFailure, requestIdOf, toProblem } from '../../http/problem.js';

const summarize = ({ provider, model, code, usage }: EndedAttempt) => ({ provider, model, code, usage });

/** Whether the client names `text/event-stream`. Ranges such as `text/*` and a missing `Accept` mean JSON. */
export function acceptsEventStream(request: HttpRequest): boolean {
  if (request.method === 'HEAD' || !/text\/event-stream/i.test(request.get('Accept') ?? '')) return false;
  const types = ['application/json', eventStreamType, `${eventStreamType}; charset=utf-8`];
  const preferred = request.accepts(types);
  return preferred !== false && preferred.startsWith(eventStreamType);
}

/** The position in a `Last-Event-ID`; throws `invalid_request` for what no event had as its id. */
export function readLastEventId(header: string | undefined): TextPosition | undefined {
  if (header === undefined || header === '') return undefined;
  const [, callId, offset] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(header) ?? [];
  if (callId === undefined)
    throw invalidRequest([{ pointer: 'Last-Event-ID', detail: 'is not the id of an event of a reply' }]);
  return { callId, offset: Number(offset) };
}

/** A chat whose reply is read as it is written, and how its conversation was changed before its job was made. */
interface StreamedChat {
  provider: ProviderId;
  changes?: readonly string[] | undefined;
}

/** A reply as `delta`s, then `done` or `error`. A chat that fails before the first of them has an ordinary problem. */
export class EventStream implements DeltaSink {
  readonly #response: HttpResponse;
  readonly #events: EventResponse;
  readonly #provider: ProviderId;
  readonly #changes: StreamedChat['changes'];

  constructor(response: HttpResponse, { provider, changes }: StreamedChat) {
    this.#response = response;
    this.#events = new EventResponse(response);
    this.#provider = provider;
    this.#changes = changes;
  }

  begin({ writer, changes }: ReplySource = {}): void {
    const provider = writer?.provider ?? this.#provider;
    this.#events.begin({ 'X-LLM-Provider': provider, ...changesHeader(this.#changes, changes) });
  }

  write(delta: string, { callId, offset }: TextPosition): boolean {
    this.begin();
    return this.#events.send({ id: `${callId}.${offset}`, event: 'delta', data: JSON.stringify({ delta }) });
  }

  drained(): Promise<void> {
    return this.#events.drained();
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

  #done(completion: Completion): void {
    const { kind, text, model, usage, attempts } = completion;
    const provider = answeredBy(completion, this.#provider);
    this.begin({ writer: { provider }, changes: completion.changes });
    const finishReason = kind === 'ok' ? 'stop' : 'length';
    const summary = attempts && { attempts: attempts.map(summarize) };
    this.#endWith('done', { response: text, finishReason, provider, model, usage, ...summary });
  }

  /** An unexpected error goes to the handler that logs them. */
  #fail(error: unknown): void {
    if (!this.#events.hasBegun || !(error instanceof Failure)) throw error;
    recordFailure(this.#response, error);
    this.#endWith('error', toProblem(error, requestIdOf(this.#response)));
  }

  #endWith(event: string, data: object): void {
    this.#events.end({ event, data: JSON.stringify(data) });
  }
}
