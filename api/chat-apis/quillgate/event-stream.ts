import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { Failure } from '../../../shared/failures.js';
import type { EndedAttempt } from '../../../shared/protocol/attempts.js';
import { invalid } from '../../../shared/validation.js';
import { answeredBy, type Completion } from '../../chat/chat-result.js';
import { changesHeader } from '../../chat/conversation-changes.js';
import type { ReplySource, TextPosition } from '../../chat/reply-stream.js';
import { EventResponse, eventStreamType } from '../../http/event-response.js';
import { requestIdOf, toProblem } from '../../http/problem.js';
import type { ReplySink } from '../serve.js';

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
  if (callId === undefined) throw invalid('Last-Event-ID', 'is not the id of an event of a reply');
  return { callId, offset: Number(offset) };
}

/** A chat whose reply is read as it is written, and how its conversation was changed before its job was made. */
interface StreamedChat {
  provider: ProviderId;
  changes?: readonly string[] | undefined;
}

/** A reply as `delta`s, then `done` or `error`. A chat that fails before the first of them has an ordinary problem. */
export class EventStream implements ReplySink {
  readonly #response: HttpResponse;
  readonly #events: EventResponse;
  readonly #chat: StreamedChat;

  constructor(response: HttpResponse, chat: StreamedChat) {
    this.#response = response;
    this.#events = new EventResponse(response);
    this.#chat = chat;
  }

  get hasBegun(): boolean {
    return this.#events.hasBegun;
  }

  begin({ writer, changes }: ReplySource = {}): void {
    const provider = writer?.provider ?? this.#chat.provider;
    this.#events.begin({ 'X-LLM-Provider': provider, ...changesHeader(this.#chat.changes, changes) });
  }

  write(delta: string, { callId, offset }: TextPosition): boolean {
    this.begin();
    return this.#events.send({ id: `${callId}.${offset}`, event: 'delta', data: JSON.stringify({ delta }) });
  }

  drained(): Promise<void> {
    return this.#events.drained();
  }

  done(completion: Completion): void {
    const { kind, text, model, usage, attempts } = completion;
    const provider = answeredBy(completion, this.#chat.provider);
    this.begin({ writer: { provider }, changes: completion.changes });
    const finishReason = kind === 'ok' ? 'stop' : 'length';
    const summary = attempts && { attempts: attempts.map(summarize) };
    this.#endWith('done', { response: text, finishReason, provider, model, usage, ...summary });
  }

  fail(failure: Failure): void {
    this.#endWith('error', toProblem(failure, requestIdOf(this.#response)));
  }

  #endWith(event: string, data: object): void {
    this.#events.end({ event, data: JSON.stringify(data) });
  }
}
