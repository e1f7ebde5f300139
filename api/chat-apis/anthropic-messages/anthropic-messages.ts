import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import { providerIds } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';
import type { JobClass } from '../../../shared/queue/add-attempt.js';
import { invalid } from '../../../shared/validation.js';
import type { AuthenticatedRequest } from '../../access/caller.js';
import { answeredBy, type Completion } from '../../chat/chat-result.js';
import type { ReplySource } from '../../chat/reply-stream.js';
import { recordProvider, requestIdOf } from '../../http/problem.js';
import type { ChatApi, ChatApiDeps } from '../chat-api.js';
import { chatIdOf, completionHeaders } from '../mount.js';
import {
  modelNotFound,
  readClientTimeoutMs,
  readModel,
  readOptions,
  readProvider,
} from '../request-options.js';
import { serveChat } from '../serve.js';
import { sendAnthropicError, stopDetailsOf } from './anthropic-error.js';
import { bodyMark, readMessageBody } from './message-body.js';
import { type MessageHead, toMessage, toRefusedMessage } from './message-events.js';
import { MessageStream } from './message-stream.js';
import { createMessageApi, schemas } from './open-api.js';

/** Answers a message; https://platform.claude.com/docs/en/api/messages says what it reads. */
async function createMessage(
  request: AuthenticatedRequest,
  response: HttpResponse,
  { config, chatService }: ChatApiDeps,
): Promise<void> {
  response.set('request-id', requestIdOf(response));
  const named = readProvider(request);
  const { options, applied } = readOptions(request, { maxWaitS: config.CHAT_MAX_WAIT_S, api: 'messages' });
  const { isStream, hidesThinking, fields, facts, uploads, tokens, ...read } = await readMessageBody(
    request.body,
    response.locals.body.bytes,
  );
  const asked = readModel(read.model, named, { aliases: config.MODEL_ALIASES ?? [], ofBare: providerOfBare });
  const { provider, replyModel: model } = asked;
  if (provider !== 'anthropic') throw modelNotFound(onlyAnthropic);
  recordProvider(response, provider);
  const head = (): MessageHead => ({ id: chatIdOf(response), model, tokens });
  const headers = ({ writer }: ReplySource) => ({ 'X-LLM-Provider': writer?.provider ?? provider });
  let sink: MessageStream | undefined;
  const stream = () => {
    sink = new MessageStream({ response, head, headers });
    return { sink, from: undefined };
  };
  const send = (completion: Completion) => {
    const message = toMessage(head(), completion);
    response
      .set(completionHeaders(completion, asked))
      .set('X-LLM-Provider', answeredBy(completion, provider))
      .set('X-LLM-Finish-Reason', String(message.stop_reason))
      .json(message);
  };
  const command = {
    ...options,
    provider,
    model: asked.model,
    body: { ...facts, version: readVersion(request), features: readFeatures(request) },
    images: uploads,
    reasoning: hidesThinking ? ('opaque' as const) : ('shown' as const),
    jobClass: readClass(request),
    timeoutMs: config.CHAT_COMPATIBLE_TIMEOUT_MS,
    queueMs: config.CHAT_COMPATIBLE_TIMEOUT_MS,
    clientTimeoutMs: isStream ? undefined : readClientTimeoutMs(request),
  };
  const unfitFor = providerIds.filter((id) => id !== 'anthropic');
  const content = { body: { value: fields, mark: bodyMark }, unfitFor };
  const form = { send, stream: isStream ? stream : undefined };
  try {
    await serveChat(response, { content, command, applied, form }, chatService);
  } catch (error) {
    const details = error instanceof Failure ? stopDetailsOf(error) : undefined;
    if (details === undefined || response.headersSent) throw error;
    if (sink) sink.refuse(details);
    else response.json(toRefusedMessage(head(), details));
  }
}

/** Whose work it is, as Claude Code says where it is asked to, or as its headers show. */
function readClass(request: HttpRequest): JobClass {
  const word = request.get('x-claude-code-request-class') ?? request.get('x-claude-1p-request-class');
  if (word === 'auxiliary') return 'auxiliary';
  const isAgent = word === undefined && request.get('x-claude-code-agent-id') !== undefined;
  return isAgent || word === 'subagent' || word === 'workflow' ? 'subagent' : 'ordinary';
}

const onlyAnthropic = 'must be a model of anthropic: messages are not sent to other providers';

/** Claude's models are asked for by their bare names. */
const providerOfBare = (name: string) => (name.startsWith('claude') ? ('anthropic' as const) : undefined);

/** A day; absent means that of the API's first version. https://platform.claude.com/docs/en/api/versioning */
function readVersion(request: HttpRequest): string {
  const version = request.get('anthropic-version') ?? '2023-06-01';
  if (/^\d{4}-\d\d-\d\d$/.test(version)) return version;
  throw invalid('anthropic-version', 'must be a day such as 2023-06-01');
}

/** The names of beta features, but for that of a login at Anthropic, which is not ours. */
function readFeatures(request: HttpRequest): string[] {
  const names = (request.get('anthropic-beta') ?? '').split(',').map((name) => name.trim());
  const sent = names.filter((name) => name !== '' && !name.startsWith('oauth-'));
  if (sent.length <= 50 && sent.every((name) => /^[\w.:-]{1,100}$/.test(name))) return sent;
  throw invalid('anthropic-beta', 'must be a comma list of at most 50 names');
}

/** Anthropic's Messages API. */
export const anthropicMessages: ChatApi = {
  name: 'anthropic',
  title: 'Chat with Anthropic’s clients',
  about:
    'The same for Claude Code and other programs that speak the Messages API, with this address as their base.',
  description: "Messages for the clients of Anthropic's API. Bearer or x-api-key: an access token; or Basic.",
  roots: ['/v1/messages'],
  apiKeyHeader: 'x-api-key',
  sendFailure: sendAnthropicError,
  operations: [
    {
      method: 'post',
      path: '/v1/messages',
      beginsChat: true,
      body: ({ MAX_COMPATIBLE_BODY_BYTES: maxBytes }) => ({ maxBytes, maxDepth: 64, digits: bodyMark }),
      openApi: createMessageApi,
      handle: createMessage,
    },
  ],
  schemas,
};
