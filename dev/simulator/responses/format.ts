import { joinBlocks } from '../blocks.js';
import { serverSentEvent } from '../json.js';
import { invalid, openAiError } from '../openai/errors.js';
import { openAiFormat } from '../openai/format.js';
import type { Ending, Frame, Reply, StreamFrames, WireFormat } from '../wire-format.js';
import { type ResponsesEvent, writeItems } from './items.js';
import { responsesPartRules } from './part-rules.js';
import { readResponsesParameters, readResponsesTurns } from './parts.js';
import type { ResponsesBody } from './rules.js';
import { checkResponsesRequest } from './rules.js';

const operation = '/v1/responses';
const serverError = {
  code: 'server_error',
  message: 'An error occurred while processing your request. You can retry your request.',
};

/** OpenAI's Responses (https://developers.openai.com/api/reference/resources/responses), without what it stores. */
export const responsesFormat: WireFormat = {
  ...openAiFormat,
  errors: {
    ...openAiFormat.errors,
    tooLong: () =>
      openAiError(
        400,
        'Your input exceeds the context window of this model. Please adjust your input and try again.',
        { param: 'input', code: 'context_length_exceeded' },
      ),
    hint: (name, value) => openAiFormat.errors.hint(hintNames[name] ?? name, value),
    // https://github.com/pydantic/pydantic-ai/issues/2865
    reasoning: () => invalid('Encrypted content is not supported with this model.', 'include'),
  },
  owns: ({ path }) => path.startsWith(operation),
  route: ({ method, path }) =>
    path === operation && method === 'POST' ? {} : openAiError(404, `Invalid URL (${method} ${path})`),
  validate: checkResponsesRequest,
  turns: (body) => readResponsesTurns(body as ResponsesBody),
  parameters: (body) => readResponsesParameters(body as ResponsesBody),
  partRules: responsesPartRules,
  failsInReply: true,
  reply: (reply) => writeResponse(reply, { output: writeItems(reply).map(({ whole }) => whole) }),
  stream: writeEvents,
  // As a transport's event in `lib/responses/ResponseAccumulator` of the SDK; at Azure after 30 s.
  lifeSign: (_of, { place, index }) => event({ type: 'keepalive' }, place * numbersOfFrame + 10 + index),
  malformed: () => 'event: response.output_text.delta\ndata: {"unfinished\n\n',
  // Flat in the type, `ResponseErrorEvent`, and nested on the wire: https://github.com/Effect-TS/effect/pull/7262
  streamError: (callId) =>
    callId % 2 === 0
      ? event({ type: 'error', ...serverError, param: null }, 1e6)
      : event({ type: 'error', error: { type: 'server_error', ...serverError, param: null } }, 1e6),
};

const hintNames: Record<string, string> = {
  reasoningEffort: 'reasoning.effort',
  verbosity: 'text.verbosity',
};

const reasons: Partial<Record<Ending, string>> = {
  length: 'max_output_tokens',
  blocked: 'content_filter',
  'blocked-reply': 'content_filter',
};

const statusOf = ({ ending }: Reply) =>
  ending === 'failed' ? 'failed' : reasons[ending] === undefined ? 'completed' : 'incomplete';

/** A response as it ends, or with the facts of its beginning. */
function writeResponse(reply: Reply, facts: { output: object[]; status?: 'in_progress' }): object {
  const { callId, createdAt, model, ending, request } = reply;
  const isEnded = facts.status === undefined;
  const reason = isEnded ? reasons[ending] : undefined;
  return {
    ...{ id: `resp_sim${callId}`, object: 'response', created_at: Math.floor(createdAt / 1000) },
    ...{ status: statusOf(reply), background: false, error: null, instructions: null },
    incomplete_details: reason === undefined ? null : { reason },
    ...{ max_output_tokens: null, model, parallel_tool_calls: true, previous_response_id: null },
    ...{ reasoning: { effort: null, summary: null }, service_tier: 'default', store: true },
    ...{ temperature: 1, text: { format: { type: 'text' } }, tool_choice: 'auto', tools: [], top_p: 1 },
    ...{ truncation: 'disabled', metadata: {}, usage: isEnded ? writeUsage(reply) : null },
    ...Object.fromEntries(echoed.flatMap((name) => (name in request ? [[name, request[name]]] : []))),
    ...(isEnded && ending === 'failed' && { error: serverError }),
    ...facts,
  };
}

/** The fields of a request that stand in its response. */
const echoed = [
  ...['instructions', 'max_output_tokens', 'parallel_tool_calls', 'reasoning', 'store', 'temperature'],
  ...['text', 'tool_choice', 'tools', 'top_p'],
];

function writeUsage(reply: Reply): object | null {
  const { hasUsage, inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = reply;
  if (!hasUsage) return null;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}

/** The events of a stream. The last has the whole response, and there is no `[DONE]`. */
function writeEvents(reply: Reply): StreamFrames {
  let frames = 0;
  const frame = (events: readonly ResponsesEvent[]): Frame => {
    const first = frames * numbersOfFrame;
    frames += 1;
    return events.map((each, index) => event(each, first + index)).join('');
  };
  const begun = writeResponse(reply, { status: 'in_progress', output: [] });
  const start = frame([
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
  ]);
  const items = writeItems(reply);
  const { opening, deltas, closing } = joinBlocks(
    items.map(({ beginning, deltas: added, end }) => [
      frame(beginning),
      ...added.map((delta) => frame([delta])),
      frame(end),
    ]),
  );
  const response = writeResponse(reply, { output: items.map(({ whole }) => whole) });
  return {
    opening: [start, ...opening],
    deltas,
    closing: [...closing, frame([{ type: `response.${statusOf(reply)}`, response }])],
  };
}

/** The numbers of events grow by more than one, so that signs of life find numbers between two frames. */
const numbersOfFrame = 100;

const event = (data: ResponsesEvent, number: number): string =>
  serverSentEvent({ ...data, sequence_number: number }, data.type);
