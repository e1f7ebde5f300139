import { isObject } from '../../../shared/json/json.js';
import { serverSentEvent } from '../frames.js';
import type { Ending, Reply, StreamFrames, WireFormat } from '../wire-format.js';
import * as body from './body.js';
import { openAiError, openAiErrorBody, openAiErrors } from './errors.js';

const operation = '/v1/chat/completions';
export const refusalText = "I'm sorry, but I can't help with that.";
const done = 'data: [DONE]\n\n';

/** OpenAI's Chat Completions (https://platform.openai.com/docs/api-reference/chat). */
export const openAiFormat: WireFormat = {
  provider: 'openai',
  streamType: 'text/event-stream; charset=utf-8',
  garbage: serverSentEvent({ unexpected: true }),
  errors: openAiErrors,
  owns: ({ path }) => path.startsWith('/v1/'),
  route({ method, path }) {
    if (path !== operation) return openAiError(404, `Invalid URL (${method} ${path})`);
    if (method === 'POST') return {};
    return openAiError(405, `Not allowed to ${method} on ${path}.`, { code: 'method_not_supported' });
  },
  authenticate({ headers }) {
    if (/^Bearer \S+$/.test(headers.authorization ?? '')) return undefined;
    return openAiError(401, "You didn't provide an API key.");
  },
  validate: (sent) => body.checkOpenAiRequest(sent as unknown as body.OpenAiBody),
  turns: (sent) => body.readOpenAiTurns(sent as unknown as body.OpenAiBody),
  parameters: (sent) => body.readOpenAiParameters(sent as unknown as body.OpenAiBody),
  partRules: body.partRulesOf(true),
  headers: (callId) => ({ 'x-request-id': `req_sim${callId}`, 'openai-version': '2020-10-01' }),
  reply: writeCompletion,
  stream: writeChunks,
  malformed: () => 'data: {"unfinished\n\n',
  // Comments of servers that speak this format: https://openrouter.ai/docs/api_reference/streaming
  lifeSign: () => ': OPENROUTER PROCESSING\n\n',
  streamError: () => serverSentEvent(openAiErrorBody('The server had an error.', { type: 'server_error' })),
};

const finishReasons: Partial<Record<Ending, string>> = {
  length: 'length',
  blocked: 'content_filter',
  'blocked-reply': 'content_filter',
};

const finishReasonOf = ({ ending, calls }: Reply): string =>
  finishReasons[ending] ?? (calls.length > 0 ? 'tool_calls' : 'stop');

const hasContent = ({ ending, text, calls }: Reply): boolean =>
  ending !== 'null' && ending !== 'refused' && (text !== '' || calls.length === 0);

/** The words of thinking at servers that speak this format; nothing at OpenAI. */
const thinkingOf = ({ thoughts }: Reply) => {
  const words = thoughts.map(({ text }) => text).join(' ');
  return words.trim() === '' ? undefined : { reasoning_content: words };
};

function writeCompletion(reply: Reply): object {
  const { ending } = reply;
  const choice = {
    index: 0,
    message: {
      role: 'assistant',
      ...thinkingOf(reply),
      content: hasContent(reply) ? reply.text : null,
      refusal: ending === 'refused' ? refusalText : null,
      annotations: [],
      ...(reply.calls.length > 0 && { tool_calls: body.writeOpenAiCalls(reply) }),
    },
    logprobs: null,
    finish_reason: finishReasonOf(reply),
  };
  return {
    ...envelope(reply, 'chat.completion'),
    choices: ending === 'empty' ? [] : [choice],
    ...(reply.hasUsage && { usage: writeUsage(reply) }),
  };
}

function writeChunks(reply: Reply): StreamFrames {
  const { ending } = reply;
  const options = reply.request.stream_options;
  const withUsage = isObject(options) && options.include_usage === true && reply.hasUsage;
  const base = { ...envelope(reply, 'chat.completion.chunk'), ...(withUsage && { usage: null }) };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    serverSentEvent({ ...base, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  const usage = withUsage ? [serverSentEvent({ ...base, choices: [], usage: writeUsage(reply) })] : [];
  if (ending === 'empty') {
    return { opening: [serverSentEvent({ ...base, choices: [] })], deltas: [], closing: [...usage, done] };
  }
  const pieces = ending === 'refused' ? [refusalText] : reply.pieces;
  const first = ending === 'null' || (ending !== 'refused' && !hasContent(reply)) ? null : '';
  const field = ending === 'refused' ? 'refusal' : 'content';
  const thinking = thinkingOf(reply);
  return {
    opening: [chunk({ role: 'assistant', content: first, refusal: null })],
    deltas: [
      ...(thinking ? [chunk(thinking)] : []),
      ...pieces.map((piece) => chunk({ [field]: piece })),
      ...body.writeOpenAiCallDeltas(reply).map((deltas) => deltas.map((delta) => chunk(delta)).join('')),
    ],
    closing: [chunk({}, finishReasonOf(reply)), ...usage, done],
  };
}

function envelope(reply: Reply, object: string) {
  return {
    id: `chatcmpl-sim${reply.callId}`,
    object,
    created: Math.floor(reply.createdAt / 1000),
    model: reply.model,
    service_tier: 'default',
    system_fingerprint: 'fp_simulator',
  };
}

const writeUsage = ({ inputTokens, outputTokens, ...reply }: Reply): object => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: reply.cachedTokens, cache_write_tokens: reply.cacheWriteTokens },
  completion_tokens_details: { reasoning_tokens: reply.reasoningTokens, audio_tokens: 0 },
});
