import { stopReasonOf } from '../claude.js';
import { joinBlocks, serverSentEvent, type WrittenBlock } from '../frames.js';
import type { Frame, Reply, StreamFrames, WireFormat } from '../wire-format.js';
import * as body from './body.js';
import { anthropicError, anthropicErrorBody, anthropicErrors } from './errors.js';
import { checkMessagesBody } from './rules.js';

/** The versions that are accepted: the SDK's (in its `client.js`), and older ones. */
const versions = ['2026-10-21', '2023-06-01', '2023-01-01'];

/** Anthropic's Messages (https://docs.anthropic.com/en/api/messages). */
export const anthropicFormat: WireFormat = {
  provider: 'anthropic',
  streamType: 'text/event-stream; charset=utf-8',
  garbage: event({ type: 'unexpected_event' }),
  errors: anthropicErrors,
  owns: ({ path, headers }) =>
    path.startsWith('/v1/messages') ||
    (path.startsWith('/v1/') && headers['anthropic-version'] !== undefined),
  route({ method, path }) {
    if (path !== '/v1/messages') return anthropicError(404, 'Not found');
    return method === 'POST' ? {} : anthropicError(405, 'Method Not Allowed');
  },
  authenticate({ headers }) {
    const bearer = /^Bearer \S+$/.test(headers.authorization ?? '');
    if (!bearer && !headers['x-api-key']) return anthropicError(401, 'x-api-key header is required');
    const version = headers['anthropic-version'];
    if (!version) return anthropicError(400, 'anthropic-version: header is required');
    if (versions.includes(String(version))) return undefined;
    return anthropicError(400, `anthropic-version: "${version}" is not a valid version`);
  },
  validate(sent, head) {
    const message = sent as unknown as body.AnthropicBody;
    return body.checkAnthropicRequest(message) ?? checkMessagesBody(message, head);
  },
  turns: (sent) => body.readAnthropicTurns(sent as unknown as body.AnthropicBody),
  cacheBlocks: (sent) => body.readAnthropicCacheBlocks(sent as unknown as body.AnthropicBody),
  parameters: (sent) => body.readAnthropicParameters(sent as unknown as body.AnthropicBody),
  partRules: body.anthropicPartRules,
  signatureOf: body.anthropicSignatureOf,
  headers: (callId) => ({ 'request-id': `req_sim${callId}` }),
  reply: (reply) => ({
    ...writeMessage(reply),
    content: body.writeAnthropicBlocks(reply).map(({ whole }) => whole),
    ...writeStop(reply),
    usage: writeUsage(reply),
  }),
  malformed: () => 'event: content_block_delta\ndata: {"unfinished\n\n',
  stream: writeEvents,
  // https://platform.claude.com/docs/en/build-with-claude/streaming#ping-events
  lifeSign: () => event({ type: 'ping' }),
  streamError: () => event(anthropicErrorBody('overloaded_error', 'Overloaded')),
};

const stopReasons = { blocked: 'refusal', 'blocked-reply': 'refusal', refused: 'refusal' };

/** A message as a stream begins it, before its usage. */
const writeMessage = ({ callId, model }: Reply): object => ({
  id: `msg_sim${callId}`,
  type: 'message',
  role: 'assistant',
  model,
  container: null,
  diagnostics: null,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
});

function writeStop(reply: Reply): object {
  const reason = stopReasonOf(reply, stopReasons);
  const category = reply.ending === 'refused' ? (reply.refusal ?? 'cyber') : null;
  const details = { type: 'refusal', category, explanation: 'Refused by the simulator as asked.' };
  const stop_details = reason === 'refusal' ? details : null;
  return { stop_reason: reason, stop_sequence: reply.stoppedBy ?? null, stop_details };
}

/** Tokens that are read from the cache or written to it are not in `input_tokens`. */
function writeUsage(reply: Reply): object | undefined {
  const { hasUsage, inputTokens, outputTokens, reasoningTokens, cachedTokens, cacheWriteTokens } = reply;
  if (!hasUsage) return undefined;
  const searches = reply.blocks?.filter((block) => 'search' in block).length ?? 0;
  return {
    input_tokens: inputTokens - cachedTokens - cacheWriteTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWriteTokens - reply.cacheWriteFor1hTokens,
      ephemeral_1h_input_tokens: reply.cacheWriteFor1hTokens,
    },
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: reasoningTokens },
    ...(searches > 0 && { server_tool_use: { web_search_requests: searches, web_fetch_requests: 0 } }),
    service_tier: 'standard',
  };
}

function writeEvents(reply: Reply): StreamFrames {
  const start = event({
    type: 'message_start',
    message: { ...writeMessage(reply), usage: writeUsage({ ...reply, outputTokens: 1 }) },
  });
  const frames = joinBlocks([start], body.writeAnthropicBlocks(reply).map(writeBlock), [
    event({ type: 'message_delta', delta: writeStop(reply), usage: writeUsage(reply) }),
    event({ type: 'message_stop' }),
  ]);
  return { ...frames, opening: [...frames.opening, event({ type: 'ping' })] };
}

const writeBlock = ({ start, deltas }: WrittenBlock, index: number): Frame[] => [
  event({ type: 'content_block_start', index, content_block: start }),
  ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
  event({ type: 'content_block_stop', index }),
];

/** Anthropic names each server-sent event like the `type` of its data. */
function event(data: { type: string; [field: string]: unknown }): string {
  return serverSentEvent(data, data.type);
}
