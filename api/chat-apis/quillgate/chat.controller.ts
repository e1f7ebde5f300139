import {
  Body,
  Controller,
  Header,
  Middlewares,
  Post,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { Response as HttpResponse } from 'express';
import type {
  AcceptedChat,
  ChatRequest,
  ChatResponse,
  Problem,
  ProviderId,
} from '../../../shared/contracts/contract.js';
import type { AuthenticatedRequest } from '../../access/caller.js';
import type { Completion } from '../../chat/chat-result.js';
import type { ChatService } from '../../chat/chat-service.js';
import { refuseChanges } from '../../chat/conversation-changes.js';
import { readChatBody } from '../../http/json-body.js';
import { completionHeaders } from '../mount.js';
import { checkModel, readOptions } from '../request-options.js';
import { serveChat } from '../serve.js';
import { checkChatRequest, readTurns } from './chat-request.js';
import { acceptsEventStream, EventStream, readLastEventId } from './event-stream.js';

export interface ChatControllerDeps {
  chatService: Pick<ChatService, 'createChat'>;
  /** The longest `wait` that a caller may ask for, in seconds. */
  maxWaitS: number;
}

@Route('chat')
export class ChatController extends Controller {
  constructor(private readonly deps: ChatControllerDeps) {
    super();
  }

  /**
   * Sends the conversation to the provider that `X-LLM` names and returns its reply as one text. Fields besides
   * `messages`, and besides `role` and `content` of a message, are ignored and named in `X-Ignored-Fields`. With an
   * `Idempotency-Key` or `Prefer: respond-async` the chat is stored: it goes on when the client disconnects, and can be
   * read at `/chat/{id}`, as `Content-Location` has it; the id is the `X-Request-Id` of the request that began it.
   *
   * With `Accept: text/event-stream` the reply comes as it is written, as server-sent events: `delta` with
   * `{"delta": "…"}`, each piece of the text once and in order, then `done` with
   * `{"response", "finishReason", "provider", "model", "usage"}`, or `error` with a problem. A chat that fails before
   * its first piece is answered with an ordinary problem.
   *
   * @summary Chat with a language model
   * @param provider Which provider serves the request.
   * @param model The provider's own model name; absent means the configured one.
   * @param _fallback The providers to ask when the first is unavailable, limits us, fails or takes too long, as long as
   * nothing of its reply was sent: up to four providers or `provider/model`, in a comma list. The conversation then
   * reaches that company, too. Without this header the operators may have set a fallback; `none` switches it off.
   * Blocked content and refused requests are not passed on.
   * @param _prefer `wait=N` sets the deadline of this request, in whole seconds (RFC 7240). `respond-async` answers 202
   * at once, or after `wait=N` if the reply is not there by then. `handling=strict` refuses fields that nothing reads.
   * Other preferences are ignored.
   * @param _idempotencyKey 1 to 255 visible ASCII characters: requests with the same key share one chat and its reply.
   * The chat calls the provider once, again if the call fails transiently, and at most four times if workers die. A
   * chat that failed transiently is not replayed; the next request with its key tries again.
   * @param lastEventId Of a stream that broke off: the id of the last event that arrived. The stream of a stored chat
   * goes on behind it, if it is the same reply still.
   */
  @Post()
  @Security('basic')
  @Middlewares(readChatBody, checkChatRequest)
  @SuccessResponse<{
    /** Id of this request; quote it when you ask the operators. */
    'X-Request-Id': string;
    /** The provider that answered. */
    'X-LLM-Provider': string;
    /** The model that answered, in the provider's words. A stream has this and the next headers in its last event. */
    'X-LLM-Model': string;
    /** `stop`, or `length` when the reply was cut at the token limit. */
    'X-LLM-Finish-Reason': string;
    /** Tokens read, as the provider counted them; absent when it did not. */
    'X-LLM-Input-Tokens': string;
    /** Tokens written, as the provider counted them; absent when it did not. */
    'X-LLM-Output-Tokens': string;
    /** All attempts in order, if there were several: `openai;code=provider_error, anthropic;code=ok;output=40`. */
    'X-LLM-Attempts': string;
    /** Milliseconds in the queue and at the provider, as `queue;dur=…, provider;dur=…`. */
    'Server-Timing': string;
    /** `handling=strict` and `wait=N` when the request asked for them. */
    'Preference-Applied': string;
    /** Fields of the body and of messages (`messages/*\/…`) that nothing reads, percent-encoded, twenty at most. */
    'X-Ignored-Fields': string;
    /** How the conversation was changed for the provider that answered, such as `marked-system`; absent means not. */
    'X-Conversation-Changes': string;
    /** `true` when the reply is older than the request. */
    'Idempotency-Replayed': string;
    /** Path of the chat, if it is stored. */
    'Content-Location': string;
    /** `no` with a stream, which proxies are not to gather. */
    'X-Accel-Buffering': string;
  }>('200', 'The reply', ['application/json', 'text/event-stream'])
  @Response<
    AcceptedChat,
    {
      'X-Request-Id': string;
      /** Path of the chat. */
      Location: string;
      'Content-Location': string;
      /** `respond-async`, and `handling=strict` and `wait=N` when the request asked for them. */
      'Preference-Applied': string;
      'X-Ignored-Fields': string;
    }
  >('202', 'Accepted; the reply will be at Location', undefined, 'application/json')
  @Response<Problem, { 'Preference-Applied': string; 'X-Ignored-Fields': string }>('400', 'Bad request')
  @Response<Problem>('404', 'No such address')
  @Response<Problem, { 'Preference-Applied': string; 'X-Ignored-Fields': string }>(
    '422',
    'The key was used with another request',
  )
  @Response<Problem, { 'Retry-After': string; 'Preference-Applied': string; 'X-Ignored-Fields': string }>(
    '429',
    'Too many failed logins, or more requests or bytes than one user may have at once or in a minute',
  )
  @Response<
    Problem,
    {
      'Retry-After': string;
      'X-LLM-Attempts': string;
      'Preference-Applied': string;
      'X-Ignored-Fields': string;
      'Idempotency-Replayed': string;
      'Content-Location': string;
    }
  >('500', 'Server error; Retry-After is sent where waiting helps')
  async chat(
    @Request() request: AuthenticatedRequest,
    @Header('X-LLM') provider: ProviderId,
    @Body() body: ChatRequest,
    @Header('X-LLM-Model') model?: string,
    @Header('Prefer') _prefer?: string,
    @Header('Idempotency-Key') _idempotencyKey?: string,
    @Header('Last-Event-ID') lastEventId?: string,
    @Header('X-LLM-Fallback') _fallback?: string,
  ): Promise<ChatResponse> {
    const response = request.res as HttpResponse;
    const { chatService } = this.deps;
    const { options, applied } = readOptions(request, { ...this.deps, api: 'chat' });
    const { turns, changes } = readTurns(body);
    refuseChanges({ ...options, provider, turns, changes });
    const asked = { provider, changes, model: checkModel(model) };
    const stream = () => ({ sink: new EventStream(response, asked), from: readLastEventId(lastEventId) });
    const send = (completion: Completion) => {
      const answer: ChatResponse = { response: completion.text };
      response.set(completionHeaders(completion, asked)).json(answer);
    };
    const form = { send, stream: acceptsEventStream(request) ? stream : undefined };
    const chat = { content: { turns }, command: { ...options, ...asked }, applied, form };
    await serveChat(response, chat, chatService);
    return alreadySent;
  }
}

/** The route generator wants a result; the response has ended, so it sends none. */
const alreadySent: ChatResponse = { response: '' };
