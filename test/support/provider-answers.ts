import type { ProviderId } from '../../shared/contracts/contract.js';
import type { PlayedAnswer } from './playing-provider.js';

type Block = Record<string, unknown>;
type Events = PlayedAnswer['events'];

interface Answered {
  /** A text of JSON is for numbers that are not JavaScript's. */
  blocks: readonly (Block | string)[];
  /** The blocks as they come in a stream. */
  pieces: Events;
  /** Why the reply ends; by default with its calls. */
  stopReason?: string;
}

const listOf = (blocks: Answered['blocks']): string =>
  `[${blocks.map((block) => (typeof block === 'string' ? block : JSON.stringify(block))).join()}]`;

/** Signed thinking as Anthropic writes it, and as Bedrock does. */
export const thinking = [
  { type: 'thinking', thinking: 'Hm “ß”\n', signature: 'c2ln' },
  { type: 'thinking', thinking: '', signature: 'bm9uZQ==' },
  { type: 'redacted_thinking', data: 'cmVk' },
];
export const reasoning = [
  { reasoningText: { text: 'Hm “ß”\n', signature: 'c2ln' } },
  { reasoningText: { text: '', signature: 'bm9uZQ==' } },
  { redactedContent: 'cmVk' },
];

/** The tokens of each answer below, as the adapters give them; thoughts are counted apart by all but Bedrock. */
export const usage = { inputTokens: 15, outputTokens: 7, cachedTokens: 4 };

const openaiUsage = {
  ...{ prompt_tokens: 15, completion_tokens: 7, total_tokens: 22 },
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 3 },
};

/** An answer of OpenAI: its message, and the deltas of its stream. */
export const openai = (message: Block, deltas: Block[], finish_reason = 'tool_calls'): PlayedAnswer => ({
  whole: JSON.stringify({ choices: [{ message, finish_reason }], service_tier: 'flex', usage: openaiUsage }),
  events: [
    ...deltas.map((delta): Events[number] => ['', { choices: [{ delta, finish_reason: null }] }]),
    ['', { choices: [{ delta: {}, finish_reason }] }],
    ['', { choices: [], service_tier: 'flex', usage: openaiUsage }],
  ],
});

const anthropicUsage = {
  ...{ input_tokens: 9, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 7 },
  cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 1 },
  service_tier: 'priority',
  output_tokens_details: { thinking_tokens: 3 },
};

/** An answer of Anthropic: its blocks, and the events of its stream between those that begin and end each. */
export const anthropic = ({ blocks, pieces, stopReason = 'tool_use' }: Answered): PlayedAnswer => ({
  whole: `{"model":"m","content":${listOf(blocks)},"stop_reason":"${stopReason}","usage":${JSON.stringify(anthropicUsage)}}`,
  events: (
    [
      ['message_start', { message: { model: 'm', usage: { ...anthropicUsage, output_tokens: 1 } } }],
      ...[['ping', {}], ...pieces],
      ['message_delta', { delta: { stop_reason: stopReason }, usage: { output_tokens: 7 } }],
      ['message_stop', {}],
    ] as Events
  ).map(([type, data]) => [type, typeof data === 'string' ? data : { type, ...data }]),
});

export const started = (index: number, content_block: Block): Events[number] => [
  'content_block_start',
  { index, content_block },
];
export const deltas = (index: number, ...pieces: Block[]): Events =>
  pieces.map((delta) => ['content_block_delta', { index, delta }]);
export const used = (index: number, id: string, name: string, ...pieces: string[]): Events => [
  started(index, { type: 'tool_use', id, name, input: {} }),
  ...deltas(index, ...pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json }))),
  ['content_block_stop', { index }],
];

const bedrockUsage = {
  ...{ inputTokens: 9, cacheReadInputTokens: 4, cacheWriteInputTokens: 2, outputTokens: 7, totalTokens: 22 },
  cacheDetails: [
    { ttl: '5m', inputTokens: 1 },
    { ttl: '1h', inputTokens: 1 },
  ],
};
const serviceTier = { type: 'flex' };

/** An answer of Bedrock: its blocks, and the events of its stream between those that begin and end each. */
export const bedrock = ({ blocks, pieces, stopReason = 'tool_use' }: Answered): PlayedAnswer => ({
  whole: `{"output":{"message":{"role":"assistant","content":${listOf(blocks)}}},"stopReason":"${stopReason}","usage":${JSON.stringify(bedrockUsage)},"serviceTier":${JSON.stringify(serviceTier)}}`,
  events: [
    ['messageStart', { role: 'assistant' }],
    ...pieces,
    ['messageStop', { stopReason }],
    ['metadata', { usage: bedrockUsage, serviceTier }],
  ],
});

export const converseDeltas = (contentBlockIndex: number, ...pieces: Block[]): Events =>
  pieces.map((delta) => ['contentBlockDelta', { contentBlockIndex, delta }]);
export const converseUsed = (index: number, toolUseId: string, name: string, ...pieces: string[]): Events => [
  ['contentBlockStart', { contentBlockIndex: index, start: { toolUse: { toolUseId, name } } }],
  ...converseDeltas(index, ...pieces.map((input) => ({ toolUse: { input } }))),
  ['contentBlockStop', { contentBlockIndex: index }],
];

type Called = readonly [id: string, name: string, ...pieces: string[]];
const inputOf = (pieces: string[]): Block => JSON.parse(pieces.join('') || '{}');

/** An answer of Claude with a text in these pieces, and behind it calls whose arguments come in pieces, too. */
export const saying = {
  anthropic: (texts: string[], stopReason: string, ...calls: Called[]) =>
    anthropic({
      blocks: [
        { type: 'text', text: texts.join('') },
        ...calls.map(([id, name, ...pieces]) => ({ type: 'tool_use', id, name, input: inputOf(pieces) })),
      ],
      pieces: [
        started(0, { type: 'text', text: '' }),
        ...deltas(0, ...texts.map((text) => ({ type: 'text_delta', text }))),
        ...calls.flatMap((call, place) => used(place + 1, ...call)),
      ],
      stopReason,
    }),
  bedrock: (texts: string[], stopReason: string, ...calls: Called[]) =>
    bedrock({
      blocks: [
        { text: texts.join('') },
        ...calls.map(([toolUseId, name, ...pieces]) => ({
          toolUse: { toolUseId, name, input: inputOf(pieces) },
        })),
      ],
      pieces: [
        ...converseDeltas(0, ...texts.map((text) => ({ text }))),
        ...calls.flatMap((call, place) => converseUsed(place + 1, ...call)),
      ],
      stopReason,
    }),
};

const usageMetadata = {
  ...{ promptTokenCount: 15, candidatesTokenCount: 4, thoughtsTokenCount: 3 },
  cachedContentTokenCount: 4,
  trafficType: 'ON_DEMAND',
};

/** An answer of Vertex AI: the parts of each chunk of its stream; the whole has all of them. */
export function vertexai(
  chunks: Block[][],
  finishReason = 'STOP',
  counts: Block = usageMetadata,
): PlayedAnswer {
  const candidate = (parts: Block[], more: Block = {}) => [{ content: { role: 'model', parts }, ...more }];
  const end = { usageMetadata: counts, responseId: 'r-1' };
  return {
    whole: JSON.stringify({ candidates: candidate(chunks.flat(), { finishReason }), ...end }),
    events: chunks.map((parts, place) => [
      '',
      place < chunks.length - 1
        ? { candidates: candidate(parts) }
        : { candidates: candidate(parts, { finishReason }), ...end },
    ]),
  };
}

/** An answer of each provider with this text alone, that ends as it says. */
export const plain: Record<ProviderId, (stopReason?: string) => PlayedAnswer> = {
  openai: (reason = 'stop') => openai({ content: '{}' }, [{ content: '{}' }], reason),
  anthropic: (reason = 'end_turn') => saying.anthropic(['{}'], reason),
  bedrock: (reason = 'end_turn') => saying.bedrock(['{}'], reason),
  vertexai: (reason) => vertexai([[{ text: '{}' }]], reason),
};
