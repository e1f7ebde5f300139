import { joinBlocks, serverSentEvent } from '../frames.js';
import { partRulesOf } from '../openai/body.js';
import { invalid, openAiError, refuseNone } from '../openai/errors.js';
import { openAiFormat } from '../openai/format.js';
import type { Ending, Frame, Reply, StreamFrames, WireFormat } from '../wire-format.js';
import * as body from './body.js';
import { type ResponsesEvent, type WrittenItem, writeItems } from './items.js';

const operation = '/v1/responses';
/** The numbers of events grow by more than one, so that signs of life find numbers between two frames. */
const numbersOfFrame = 100;
const places: Record<string, string> = { reasoningEffort: 'reasoning.effort', verbosity: 'text.verbosity' };
const serverError = { code: 'server_error', message: 'An error occurred while processing your request.' };

/** OpenAI's Responses (https://developers.openai.com/api/reference/resources/responses), without what it stores. */
export const responsesFormat: WireFormat = {
  ...openAiFormat,
  errors: {
    ...openAiFormat.errors,
    tooLong: () =>
      invalid('Your input exceeds the context window of this model.', 'input', 'context_length_exceeded'),
    hint: (name, value) => openAiFormat.errors.hint(places[name] ?? name, value),
    effort: (asked) => (asked.reasoningEffort === 'none' ? refuseNone('reasoning.effort') : undefined),
    // https://github.com/pydantic/pydantic-ai/issues/2865
    reasoning: () => invalid('Encrypted content is not supported with this model.', 'include'),
  },
  owns: ({ path }) => path.startsWith(operation),
  route: ({ method, path }) =>
    path === operation && method === 'POST' ? {} : openAiError(404, `Invalid URL (${method} ${path})`),
  validate: (sent) => body.checkResponsesRequest(sent as unknown as body.ResponsesBody),
  turns: (sent) => body.readResponsesTurns(sent as unknown as body.ResponsesBody),
  parameters: (sent) => body.readResponsesParameters(sent as unknown as body.ResponsesBody),
  partRules: partRulesOf(false),
  failsInReply: true,
  reply: (reply) => writeResponse(reply, writeItems(reply)),
  stream: writeEvents,
  // A transport's event in `lib/responses/ResponseAccumulator` of the SDK; Azure sends it after 30 s.
  lifeSign: (_of, { place, index }) => event({ type: 'keepalive' }, place * numbersOfFrame + 10 + index),
  malformed: () => 'event: response.output_text.delta\ndata: {"unfinished\n\n',
  // Flat in the type, `ResponseErrorEvent`, and nested on the wire: https://github.com/Effect-TS/effect/pull/7262
  streamError(callId) {
    const error = { type: 'error', ...serverError, param: null };
    const nested = { type: 'error', error: { ...error, type: 'server_error' } };
    return event(callId % 2 === 0 ? error : nested, 1e6);
  },
};

const reasons: Partial<Record<Ending, string>> = {
  length: 'max_output_tokens',
  blocked: 'content_filter',
  'blocked-reply': 'content_filter',
};

const statusOf = ({ ending }: Reply) =>
  ending === 'failed' ? 'failed' : reasons[ending] === undefined ? 'completed' : 'incomplete';

/** A response as it ends, or without items as it begins. */
function writeResponse(reply: Reply, items?: readonly WrittenItem[]): object {
  const { callId, createdAt, model, ending, request } = reply;
  const reason = items && reasons[ending];
  return {
    id: `resp_sim${callId}`,
    object: 'response',
    created_at: Math.floor(createdAt / 1000),
    model,
    status: items ? statusOf(reply) : 'in_progress',
    error: items && ending === 'failed' ? serverError : null,
    incomplete_details: reason ? { reason } : null,
    output: items?.map(({ whole }) => whole) ?? [],
    usage: items && reply.hasUsage ? writeUsage(reply) : null,
    ...Object.fromEntries(Object.entries(unasked).map(([name, value]) => [name, request[name] ?? value])),
  };
}

/** The fields of a request that stand in its response, with their values where they are not asked for. */
const unasked = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  store: true,
  temperature: 1,
  top_p: 1,
  reasoning: { effort: null, summary: null },
  tools: [],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  text: { format: { type: 'text' } },
};

const writeUsage = ({ inputTokens, outputTokens, ...reply }: Reply): object => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: reply.cachedTokens, cache_write_tokens: reply.cacheWriteTokens },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: reply.reasoningTokens },
  total_tokens: inputTokens + outputTokens,
});

/** The events of a stream. The last has the whole response, and there is no `[DONE]`. */
function writeEvents(reply: Reply): StreamFrames {
  let frames = 0;
  const frame = (events: readonly ResponsesEvent[]): Frame => {
    const first = frames * numbersOfFrame;
    frames += 1;
    return events.map((each, index) => event(each, first + index)).join('');
  };
  const response = writeResponse(reply);
  const start = frame(['response.created', 'response.in_progress'].map((type) => ({ type, response })));
  const items = writeItems(reply);
  const blocks = items.map(({ whole, start: item, opening = [], deltas, closing = [] }, output_index) => {
    const at = (each: ResponsesEvent) => ({ ...each, output_index, item_id: whole.id });
    const added = { type: 'response.output_item.added', output_index, item };
    const done = { type: 'response.output_item.done', output_index, item: whole };
    return [
      frame([added, ...opening.map(at)]),
      ...deltas.map((delta) => frame([at(delta)])),
      frame([...closing.map(at), done]),
    ];
  });
  const end = frame([{ type: `response.${statusOf(reply)}`, response: writeResponse(reply, items) }]);
  return joinBlocks([start], blocks, [end]);
}

const event = (data: ResponsesEvent, number: number): string =>
  serverSentEvent({ ...data, sequence_number: number }, data.type);
