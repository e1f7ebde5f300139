import {
  Controller,
  Get,
  Header,
  Middlewares,
  Path,
  Post,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { Response as HttpResponse } from 'express';
import type { ChatCompletion } from '../../../shared/contracts/completion-contract.js';
import type { AcceptedChat, ProviderId } from '../../../shared/contracts/contract.js';
import type { ListedModel } from '../../../shared/fleet/models.js';
import type { ModelAlias } from '../../../shared/models/model-names.js';
import type { AuthenticatedRequest } from '../../access/caller.js';
import { keptOf } from '../../chat/chat-command.js';
import { answeredBy } from '../../chat/chat-result.js';
import { refuseChanges } from '../../chat/conversation-changes.js';
import { readCompletionBody, writeTexts } from '../../http/json-body.js';
import { elapsedMsOf, recordProvider } from '../../http/problem.js';
import type { ChatControllerDeps } from '../quillgate/chat.controller.js';
import { readOptions } from '../quillgate/chat-request.js';
import { chatIdOf, completionHeaders, sendAccepted } from '../quillgate/chat-response.js';
import { type CompletionHead, finishReasonOf, toChatCompletion } from './completion.js';
import { parseCompletionBody } from './completion-body.js';
import { type CompletionRequest, toCompletionRequest } from './completion-request.js';
import { CompletionStream } from './completion-stream.js';
import { markIgnoredFields } from './ignored-fields.js';
import { RequestImages } from './images.js';
import { modelNotFound, type OpenAiError } from './openai-error.js';

/** A model that may be named here. */
export interface Model {
  /** `provider/model`, or another name for one. */
  id: string;
  object: 'model';
  /** The time at which this process first saw the model, not its release date; in seconds since the epoch. */
  created: number;
  /** Its provider. */
  owned_by: string;
}

/** Body of `GET /v1/models`. */
export interface ModelPage {
  object: 'list';
  data: Model[];
}

/** The dependencies of the operations of OpenAI's API. */
export interface OpenAiControllerDeps extends ChatControllerDeps {
  maxMessages: number;
  /** How long a caller waits who does not say so, in milliseconds. */
  compatibleTimeoutMs: number;
  /** Of all images of a request together. */
  maxImageBytes: number;
  /** The models that callers may name. */
  models: () => readonly ListedModel[];
  /** Their other names. */
  aliases: readonly ModelAlias[];
}

@Route('v1')
export class OpenAiController extends Controller {
  constructor(private readonly deps: OpenAiControllerDeps) {
    super();
  }

  /**
   * OpenAI's chat completions, for every provider. `model` is `provider/model`, a model of the provider that `X-LLM`
   * names, or a name that the operators have given one. Fields that this server does not know, and hints such as
   * `temperature` that the provider does not take, are ignored and named in `X-Ignored-Fields`; other fields that it
   * cannot do are refused, unless their value is the default. With `stream` the reply comes as chunks in server-sent
   * events; a chat that fails after its first chunk ends with an `error` in place of `[DONE]`.
   *
   * @summary Create a chat completion
   * @param provider Which provider has the model; for models without `provider/`.
   * @param prefer As for `POST /chat`.
   * @param idempotencyKey As for `POST /chat`.
   * @param fallback As for `POST /chat`.
   * @param timeout In seconds: OpenAI's clients send how long they wait. That is the deadline, of a stream the one of
   * its first chunk.
   * @param readTimeout The same as OpenAI's client for Python sends it.
   */
  @Post('chat/completions')
  @Security('chat')
  @Middlewares(readCompletionBody)
  @SuccessResponse('200', 'The reply', ['application/json', 'text/event-stream'])
  @Response<AcceptedChat>('202', 'Accepted, with Prefer: respond-async; the reply will be at Location')
  @Response<OpenAiError>('400', 'Bad request, or one that the provider refused')
  @Response<OpenAiError>('404', 'No such model or provider')
  @Response<OpenAiError>('413', 'Body too large')
  @Response<OpenAiError>('415', 'Not JSON')
  @Response<OpenAiError>('422', 'The key was used with another request')
  @Response<OpenAiError>('429', 'Over a limit, of this server or of the provider')
  @Response<OpenAiError>('502', 'The provider failed, or refused our credentials')
  @Response<OpenAiError>('503', 'Overloaded, or the provider or the queue is unavailable')
  @Response<OpenAiError>('504', 'Not in time')
  async createChatCompletion(
    @Request() request: AuthenticatedRequest,
    @Header('X-LLM') provider?: ProviderId,
    @Header('Prefer') prefer?: string,
    @Header('Idempotency-Key') idempotencyKey?: string,
    @Header('X-Stainless-Timeout') timeout?: string,
    @Header('X-LLM-Fallback') fallback?: string,
    @Header('X-Stainless-Read-Timeout') readTimeout?: string,
  ): Promise<ChatCompletion> {
    const response = request.res as HttpResponse;
    const { chatService, maxWaitS, maxMessages, maxImageBytes, compatibleTimeoutMs } = this.deps;
    const headers = { prefer, idempotencyKey, fallback };
    const { options, applied } = readOptions(request, headers, maxWaitS);
    const body = parseCompletionBody(request.body, maxMessages);
    const images = new RequestImages(maxImageBytes);
    const reading = { images, aliases: this.deps.aliases };
    const { isStream, includesUsage, turns, ...asked } = toCompletionRequest(body, provider, reading);
    refuseChanges({ ...options, ...asked, turns });
    const markIgnored = markIgnoredFields(request, { ...options, ...asked, body });
    recordProvider(response, asked.provider);
    const head = () => headFor(response, asked);
    const events =
      isStream && !options.storeOptions?.isAsync
        ? new CompletionStream({ response, head, markIgnored, includesUsage, changes: asked.changes })
        : undefined;
    const clientTimeoutMs = readClientTimeoutMs(timeout ?? readTimeout);
    const stream = events && { sink: events, from: undefined };
    const chat = { turns, parameters: asked.parameters };
    const kept = keptOf(chat, await writeTexts(response, chat), options);
    const elapsedMs = elapsedMsOf(response);
    const times = { timeoutMs: compatibleTimeoutMs, clientTimeoutMs, elapsedMs };
    const command = { ...options, ...asked, ...kept, ...times, images: images.uploads, stream };
    const replying = chatService.createChat(command);
    if (events) {
      await events.end(replying);
      return alreadySent;
    }
    const reply = await replying;
    if (reply.kind === 'accepted') {
      sendAccepted(response, reply, applied);
      return alreadySent;
    }
    const { completion } = reply;
    markIgnored(answeredBy(completion, asked.provider), completion.ignored);
    for (const [name, value] of Object.entries(completionHeaders(completion, asked)))
      this.setHeader(name, value);
    this.setHeader('X-LLM-Finish-Reason', finishReasonOf(completion));
    return toChatCompletion(head(), completion);
  }

  /**
   * The models that may be named here, and their other names, but for those that only a pattern allows.
   *
   * @summary List models
   */
  @Get('models')
  @Security('chat')
  @SuccessResponse('200', 'The models')
  async listModels(): Promise<ModelPage> {
    return { object: 'list', data: this.#models() };
  }

  /**
   * One of those that the list has.
   *
   * @summary Get a model
   * @param id `provider/model`, with or without its slashes escaped.
   */
  @Get('models/{id}')
  @Security('chat')
  @SuccessResponse('200', 'The model')
  @Response<OpenAiError>('404', 'No such model')
  async getModel(@Path() id: string): Promise<Model> {
    const model = this.#models().find((each) => each.id === id);
    if (model === undefined) throw modelNotFound();
    return model;
  }

  #models(): Model[] {
    const aliases = this.deps.aliases.filter(({ name }) => !name.endsWith('*'));
    const named = aliases.map((alias) => toModel({ ...alias, since: performance.timeOrigin }, alias.name));
    return [...this.deps.models().map((listed) => toModel(listed)), ...named];
  }
}

const toModel = ({ provider, model, since }: ListedModel, id = `${provider}/${model}`): Model => ({
  id,
  object: 'model',
  created: Math.floor(since / 1000),
  owned_by: provider,
});

const headFor = (
  response: HttpResponse,
  {
    provider,
    replyModel,
    isLowPriority,
  }: Pick<CompletionRequest, 'provider' | 'replyModel' | 'isLowPriority'>,
): CompletionHead => ({
  id: chatIdOf(response),
  created: Math.floor((Date.now() - elapsedMsOf(response)) / 1000),
  provider,
  model: replyModel,
  isFlex: isLowPriority,
});

/** Not sent: the response has ended. */
const alreadySent = {} as ChatCompletion;

/**
 * How long a client waits, in milliseconds: as its `X-Stainless-Timeout` says (openai-node, `src/client.ts`), or its
 * `X-Stainless-Read-Timeout`, the longest time between two pieces (openai-python, `src/openai/_base_client.py`).
 * Undefined for what is no time, such as the 0 of less than a second.
 */
function readClientTimeoutMs(seconds: string | undefined): number | undefined {
  const isTime = seconds !== undefined && /^\d{1,9}(\.\d{1,9})?$/.test(seconds) && Number(seconds) > 0;
  return isTime ? Number(seconds) * 1000 : undefined;
}
