import {
  Body,
  Controller,
  Header,
  Middlewares,
  OperationId,
  Post,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
  Tags,
} from '@tsoa/runtime';
import type { Request as HttpRequest, Response as HttpResponse, NextFunction } from 'express';
import type { ChatRequest, ChatResponse, Problem, ProviderId } from '../shared/contract.js';
import { toTurns } from '../shared/conversation.js';
import { Failure } from '../shared/failures.js';
import type { Answer, Gateway } from './gateway.js';
import { readJsonBody } from './json-body.js';
import { requestIdOf } from './problem.js';

/** What `POST /chat` needs of the application. */
export interface ChatDeps {
  gateway: Gateway;
  /** Most messages in one conversation. */
  maxMessages: number;
}

@Route('chat')
@Tags('chat')
export class ChatController extends Controller {
  constructor(private readonly deps: ChatDeps) {
    super();
  }

  /**
   * Sends the conversation to the provider that `X-LLM` names and returns its reply as one text.
   *
   * @summary Chat with a language model
   * @param provider Which provider serves the request.
   * @param model The provider's own model name; absent means the configured one.
   */
  @Post()
  @OperationId('chat')
  @Security('basic')
  @Middlewares(readJsonBody, refuseOddRoles)
  @SuccessResponse<{
    /** Id of this request; quote it when you ask the operators. */
    'X-Request-Id': string;
    /** The provider that answered. */
    'X-LLM-Provider': string;
    /** The model that answered, in the provider's words. */
    'X-LLM-Model': string;
    /** `stop`, or `length` when the reply was cut at the token limit. */
    'X-LLM-Finish-Reason': string;
    /** Tokens read, as the provider counted them; absent when it did not. */
    'X-LLM-Input-Tokens': string;
    /** Tokens written, as the provider counted them; absent when it did not. */
    'X-LLM-Output-Tokens': string;
    /** Milliseconds in the queue and at the provider, as `queue;dur=…, provider;dur=…`. */
    'Server-Timing': string;
  }>('200', 'The reply')
  @Response<Problem, { 'X-Request-Id': string }>('400', 'Bad request', undefined, 'application/problem+json')
  @Response<Problem, { 'X-Request-Id': string; 'WWW-Authenticate': string }>(
    '401',
    'No or wrong credentials',
    undefined,
    'application/problem+json',
  )
  @Response<Problem, { 'X-Request-Id': string }>(
    '404',
    'No such address',
    undefined,
    'application/problem+json',
  )
  @Response<Problem, { 'X-Request-Id': string; Allow: string }>(
    '405',
    'Another method',
    undefined,
    'application/problem+json',
  )
  @Response<Problem, { 'X-Request-Id': string }>(
    '413',
    'Body too large',
    undefined,
    'application/problem+json',
  )
  @Response<Problem, { 'X-Request-Id': string }>('415', 'Not JSON', undefined, 'application/problem+json')
  @Response<Problem, { 'X-Request-Id': string; 'Retry-After': string }>(
    '429',
    'Too many failed logins',
    undefined,
    'application/problem+json',
  )
  @Response<Problem, { 'X-Request-Id': string; 'Retry-After': string }>(
    '500',
    'Server error; Retry-After is sent where waiting helps',
    undefined,
    'application/problem+json',
  )
  async chat(
    @Request() request: HttpRequest,
    @Header('X-LLM') provider: ProviderId,
    @Body() body: ChatRequest,
    @Header('X-LLM-Model') model?: string,
  ): Promise<ChatResponse> {
    const turns = readTurns(body, this.deps.maxMessages);
    const requestId = requestIdOf(request.res as NonNullable<typeof request.res>);
    const answer = await this.deps.gateway.ask({ requestId, provider, model: checkModel(model), turns });
    for (const [name, value] of Object.entries(answerHeaders(answer, provider))) this.setHeader(name, value);
    return { response: answer.text };
  }
}

/**
 * The generated validation compares roles as text: it would take `["user"]` for `user`, and fail on an object that
 * has no text.
 */
function refuseOddRoles(request: HttpRequest, _response: HttpResponse, next: NextFunction): void {
  const messages: unknown = request.body?.messages;
  const odd = Array.isArray(messages)
    ? messages.findIndex((message) => !['undefined', 'string'].includes(typeof message?.role))
    : -1;
  if (odd >= 0) throw invalid(`/messages/${odd}/role`, 'is not one of the documented values');
  next();
}

const invalid = (pointer: string, detail: string): Failure =>
  new Failure('invalid_request', { errors: [{ pointer, detail }] });

function readTurns({ messages }: ChatRequest, most: number) {
  if (messages.length > most) {
    throw invalid('/messages', `must have at most ${most} messages`);
  }
  const turns = toTurns(messages);
  if (turns.length === 0) throw new Failure('empty_conversation');
  return turns;
}

/** Model names become parts of providers' URLs: no dots that climb, nothing that needs escaping. */
const modelName = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/;

function checkModel(model: string | undefined): string | undefined {
  if (model === undefined || modelName.test(model)) return model;
  throw invalid('X-LLM-Model', 'is not a model name');
}

function answerHeaders(answer: Answer, provider: ProviderId): Record<string, string> {
  const { kind, model, usage, queueMs, providerMs } = answer;
  return {
    'X-LLM-Provider': provider,
    'X-LLM-Model': model,
    'X-LLM-Finish-Reason': kind === 'ok' ? 'stop' : 'length',
    ...(usage && {
      'X-LLM-Input-Tokens': `${usage.inputTokens}`,
      'X-LLM-Output-Tokens': `${usage.outputTokens}`,
    }),
    'Server-Timing': `queue;dur=${queueMs}, provider;dur=${providerMs}`,
  };
}
