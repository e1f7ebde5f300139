import type { Response as HttpResponse } from 'express';
import type { AuthenticatedRequest } from '../../access/caller.js';
import { answeredBy, type Completion } from '../../chat/chat-result.js';
import { refuseChanges } from '../../chat/conversation-changes.js';
import { elapsedMsOf, recordProvider } from '../../http/problem.js';
import type { ChatApi, ChatApiDeps } from '../chat-api.js';
import { modelOperations, modelSchemas } from '../models.js';
import { chatIdOf, completionHeaders } from '../mount.js';
import { readClientTimeoutMs, readOptions, readProvider } from '../request-options.js';
import { serveChat } from '../serve.js';
import { type CompletionHead, finishReasonOf, toChatCompletion } from './completion.js';
import { completionBody, parseCompletionBody } from './completion-body.js';
import { markIgnoredFields, toCompletionRequest } from './completion-request.js';
import { CompletionStream } from './completion-stream.js';
import { RequestImages } from './images.js';
import { createChatCompletionApi, requestExample, schemas } from './open-api.js';
import { sendOpenAiError } from './openai-error.js';

/**
 * How long a chat may wait in line, in milliseconds. Nothing is sent meanwhile, so that one that fails has a status;
 * clients on Node give up after 300 s without a byte.
 */
const queueMs = 240_000;

/** Answers a chat completion; the comments of its schema say what it reads (`completion-body.ts`). */
async function createChatCompletion(
  request: AuthenticatedRequest,
  response: HttpResponse,
  { config, chatService }: ChatApiDeps,
): Promise<void> {
  const named = readProvider(request);
  const { options, applied } = readOptions(request, { maxWaitS: config.CHAT_MAX_WAIT_S, api: 'completions' });
  const body = parseCompletionBody(request.body, config.MAX_MESSAGES);
  const images = new RequestImages(config.MAX_IMAGE_BYTES);
  const { isStream, includesUsage, turns, ...asked } = toCompletionRequest(body, named, {
    images,
    aliases: config.MODEL_ALIASES ?? [],
  });
  refuseChanges({ ...options, ...asked, turns });
  const markIgnored = markIgnoredFields(request, { ...options, ...asked, body });
  const { provider, changes, replyModel: model, isLowPriority: isFlex } = asked;
  recordProvider(response, provider);
  const head = (): CompletionHead => {
    const created = Math.floor((Date.now() - elapsedMsOf(response)) / 1000);
    return { id: chatIdOf(response), created, provider, model, isFlex };
  };
  const stream = () => ({
    sink: new CompletionStream({ response, head, markIgnored, includesUsage, changes }),
    from: undefined,
  });
  const send = (completion: Completion) => {
    markIgnored(answeredBy(completion, provider), completion.ignored);
    response
      .set(completionHeaders(completion, asked))
      .set('X-LLM-Finish-Reason', finishReasonOf(completion))
      .json(toChatCompletion(head(), completion));
  };
  const command = {
    ...options,
    ...asked,
    images: images.uploads,
    timeoutMs: config.CHAT_COMPATIBLE_TIMEOUT_MS,
    queueMs,
    clientTimeoutMs: readClientTimeoutMs(request),
  };
  const content = { turns, parameters: asked.parameters };
  const form = { send, stream: isStream ? stream : undefined };
  return serveChat(response, { content, command, applied, form }, chatService);
}

/** OpenAI's chat completions, and the list of models. */
export const openAiChat: ChatApi = {
  name: 'openai',
  title: 'Chat with OpenAI’s clients',
  about: 'The same for programs that speak chat completions, with /v1 as their base address.',
  description: "The same conversations for the clients of OpenAI's API. Bearer: an access token; or Basic.",
  roots: ['/v1'],
  sendFailure: sendOpenAiError,
  operations: [
    {
      method: 'post',
      path: '/v1/chat/completions',
      beginsChat: true,
      // Schemas of tools may nest 32 levels deep by themselves.
      body: ({ MAX_COMPATIBLE_BODY_BYTES: maxBytes }) => ({ maxBytes, maxDepth: 48 }),
      openApi: createChatCompletionApi,
      handle: createChatCompletion,
    },
    ...modelOperations,
  ],
  schemas: {
    ChatCompletionRequest: completionBody.meta({ example: requestExample }),
    ...schemas,
    ...modelSchemas,
  },
};
