import type { Role, Turn } from '../../../shared/contract.js';
import { givenFields, type JsonObject, serverSentEvent } from '../json.js';
import type { Ending, Reply, StreamFrames, WireFormat } from '../wire-format.js';
import { anthropicError, anthropicErrorBody, anthropicErrors } from './errors.js';
import { checkAnthropicRequest } from './rules.js';

/** Anthropic's Messages (https://docs.anthropic.com/en/api/messages). */
export const anthropicFormat: WireFormat = {
  provider: 'anthropic',
  streamType: 'text/event-stream; charset=utf-8',
  garbage: { whole: { unexpected: true }, frame: event({ type: 'unexpected_event' }) },
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
    return headers['anthropic-version']
      ? undefined
      : anthropicError(400, 'anthropic-version: header is required');
  },
  validate: checkAnthropicRequest,
  turns: (body) => readTurns(body as unknown as WireRequest),
  parameters: ({ max_tokens: maxOutputTokens, stop_sequences: stop }) =>
    givenFields({ maxOutputTokens, stop: stop as string[] | undefined }),
  headers: (callId) => ({ 'request-id': `req_sim${callId}` }),
  reply: (reply) => ({
    ...writeMessage(reply),
    content: writeContent(reply),
    ...writeStop(reply),
    usage: writeUsage(reply),
  }),
  malformed: () => 'event: content_block_delta\ndata: {"unfinished\n\n',
  stream: writeEvents,
  streamError: () => event(anthropicErrorBody('overloaded_error', 'Overloaded')),
};

type WireContent = string | { text?: string }[];

interface WireRequest extends JsonObject {
  system?: WireContent;
  messages: { role: Role; content: WireContent }[];
}

function readTurns({ system, messages }: WireRequest): Turn[] {
  const turns = messages.map(({ role, content }) => ({ role, content: readText(content) }));
  return system === undefined ? turns : [{ role: 'system', content: readText(system) }, ...turns];
}

function readText(content: WireContent): string {
  return typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');
}

const stopReasons: Partial<Record<Ending, string>> = {
  length: 'max_tokens',
  blocked: 'refusal',
  'blocked-reply': 'refusal',
  refused: 'refusal',
};

function writeMessage({ callId, model }: Reply): object {
  return {
    id: `msg_sim${callId}`,
    type: 'message',
    role: 'assistant',
    model,
    container: null,
    diagnostics: null,
  };
}

function writeContent({ ending, text }: Reply): object[] {
  const none = ending === 'empty' || ending === 'blocked' || ending === 'refused';
  return none ? [] : [{ type: 'text', text, citations: null }];
}

function writeStop({ ending, stoppedBy }: Reply): object {
  const reason = stopReasons[ending] ?? (stoppedBy === undefined ? 'end_turn' : 'stop_sequence');
  const details =
    reason === 'refusal'
      ? { type: 'refusal', category: null, explanation: 'Refused by the simulator as asked.' }
      : null;
  return { stop_reason: reason, stop_sequence: stoppedBy ?? null, stop_details: details };
}

function writeUsage({ hasUsage, inputTokens, outputTokens }: Reply): object | undefined {
  if (!hasUsage) return undefined;
  return {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
    service_tier: 'standard',
  };
}

function writeEvents(reply: Reply): StreamFrames {
  const start = event({
    type: 'message_start',
    message: {
      ...writeMessage(reply),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: writeUsage({ ...reply, outputTokens: 1 }),
    },
  });
  const block = { type: 'text', text: '', citations: null };
  const hasBlock = writeContent(reply).length > 0;
  return {
    opening: [
      start,
      ...(hasBlock ? [event({ type: 'content_block_start', index: 0, content_block: block })] : []),
      event({ type: 'ping' }),
    ],
    deltas: reply.pieces.map((text) =>
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    ),
    closing: [
      ...(hasBlock ? [event({ type: 'content_block_stop', index: 0 })] : []),
      event({
        type: 'message_delta',
        delta: writeStop(reply),
        usage: writeUsage(reply),
      }),
      event({ type: 'message_stop' }),
    ],
  };
}

/** Anthropic names each server-sent event like the `type` of its data. */
function event(data: { type: string; [field: string]: unknown }): string {
  return serverSentEvent(data, data.type);
}
