import type Anthropic from '@anthropic-ai/sdk';
import { z } from 'zod';
import type { ImagePart, Part, TextPart } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import { fitSchema, useOf } from '../../../shared/models/json-schema.js';
import { claudeEffort, type ModelParameters, type Tool } from '../../../shared/models/model-parameters.js';
import { type AlternatingTurn, toAlternating } from '../../../shared/protocol/alternating-turns.js';
import { keepThinking, readerOf } from '../claude-thinking.js';
import { argumentsOf, isCached, type ProviderRequest, resultParts, toFittingId } from '../provider.js';
import { parseExactly } from '../reply/exact-json.js';

/**
 * The limit of a reply with its thinking, which a request must name, where its caller names none: Claude Code's own,
 * and Anthropic's advice for the highest efforts.
 * https://platform.claude.com/docs/en/build-with-claude/effort
 */
const maxTokensAt = (effort = 'high'): number => (effort === 'xhigh' || effort === 'max' ? 64_000 : 32_000);

/** For older models, which take no higher one. */
const fewMaxTokens = 8192;

/** How a server is asked. */
export interface BodyOptions {
  /** Whether it may be another than Anthropic's, and is sent what those are known to take; absent means not. */
  isForeign?: boolean;
  /** For how long it caches the beginnings of prompts that will be sent again: minutes, or an hour. */
  promptCache?: 'off' | 'auto' | '1h';
}

/** The body of a request for a message. */
export function toBody(request: ProviderRequest, { isForeign = false, promptCache }: BodyOptions = {}) {
  const { model, maxOutputTokens, parameters = {}, user, omits, asksThinking } = request;
  const keepsSystem = !isForeign && !omits?.has('laterSystem');
  const { system, turns } = toAlternating(keepThinking(request, 'anthropic', read), { keepsSystem });
  const { stop: stop_sequences, tools } = parameters;
  return {
    model,
    max_tokens:
      maxOutputTokens ?? (omits?.has('cap') ? fewMaxTokens : maxTokensAt(parameters.reasoningEffort)),
    messages: turns.flatMap(toMessages),
    ...(system.length > 0 && { system: toTexts(system) }),
    ...givenFields({ stop_sequences, output_config: toOutputConfig(parameters) }),
    ...(user !== undefined && { metadata: { user_id: user } }),
    ...(tools && {
      tools: tools.map((tool) => toTool(tool, isForeign)),
      ...givenFields({ tool_choice: toChoice(parameters) }),
    }),
    // `ThinkingConfigAdaptive` of the SDK; what a model shows by default depends on it.
    ...(asksThinking && { thinking: { type: 'adaptive' as const, display: 'summarized' as const } }),
    ...(isCached(request, promptCache) && { cache_control: toCacheControl(promptCache) }),
  };
}

/** By the server, up to the last block that it can cache. */
const toCacheControl = (promptCache: BodyOptions['promptCache']): Anthropic.CacheControlEphemeral => ({
  type: 'ephemeral',
  ...(promptCache === '1h' && { ttl: promptCache }),
});

function toMessages({ role, content, system }: AlternatingTurn): Anthropic.MessageParam[] {
  return [
    { role, content: typeof content === 'string' ? content : content.flatMap(toBlocks) },
    ...(system ? [{ role: 'system' as const, content: toTexts(system) }] : []),
  ];
}

function toTexts(texts: readonly string[]): string | Anthropic.TextBlockParam[] {
  const [first = '', ...others] = texts;
  return others.length === 0 ? first : texts.map((text) => ({ type: 'text', text }));
}

function toBlocks(part: Part): Anthropic.ContentBlockParam[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }];
    case 'image':
      return [{ type: 'image', source: toSource(part) }];
    case 'tool_call': {
      const { id, name } = part;
      return [{ type: 'tool_use', id: toId(id), name, input: parseExactly(argumentsOf(part)) }];
    }
    case 'tool_result': {
      const tool_use_id = toId(part.callId);
      const content = toResultContent(resultParts(part));
      return [{ type: 'tool_result', tool_use_id, content, ...(part.isError && { is_error: true }) }];
    }
    case 'opaque':
      return read(part);
  }
}

type ResultBlock = Anthropic.TextBlockParam | Anthropic.ImageBlockParam;

function toResultContent(parts: readonly (TextPart | ImagePart)[]): string | ResultBlock[] {
  const [first] = parts;
  if (parts.length === 1 && first?.type === 'text') return first.text;
  return parts.map((part) =>
    part.type === 'text' ? { type: 'text', text: part.text } : { type: 'image', source: toSource(part) },
  );
}

const toId = (id: string): string => toFittingId(id, /^[\w-]+$/);

const toSource = (image: ImagePart): Anthropic.ImageBlockParam['source'] =>
  'url' in image
    ? { type: 'url', url: image.url }
    : { type: 'base64', media_type: image.mediaType, data: image.data ?? '' };

/** Thinking that Anthropic has signed. It comes back from a client, and goes on byte for byte. */
const thinking = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.strictObject({ type: z.literal('redacted_thinking'), data: z.string() }),
]);

export type Thinking = z.output<typeof thinking>;
const read = readerOf(thinking);

/**
 * Without `eager_input_streaming` a value of a lax tool's arguments comes in one piece, a file after minutes of
 * silence. With it they may be no JSON, which the tape refuses. Each request has it: tools may not change behind
 * thinking.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming
 */
function toTool(tool: Tool, isForeign: boolean): Anthropic.Tool {
  const { name, description, parameters = { properties: {} }, strict } = tool;
  const input_schema = fitSchema('anthropic', parameters, useOf(tool)).schema as Anthropic.Tool.InputSchema;
  const own = strict ? { strict } : !isForeign && { eager_input_streaming: true };
  return { name, input_schema, ...(description && { description }), ...own };
}

function toChoice({ toolChoice, parallelToolCalls }: ModelParameters): Anthropic.ToolChoice | undefined {
  if (toolChoice === 'none') return { type: 'none' };
  const single = parallelToolCalls === false && { disable_parallel_tool_use: true };
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.name, ...single };
  if (toolChoice === 'required') return { type: 'any', ...single };
  return toolChoice || single ? { type: 'auto', ...single } : undefined;
}

function toOutputConfig({ format, reasoningEffort }: ModelParameters): Anthropic.OutputConfig | undefined {
  const { data: effort } = claudeEffort.safeParse(reasoningEffort);
  if (format?.type !== 'json_schema') return effort && { effort };
  // The only place for a description of the whole.
  const schema = { ...givenFields({ description: format.description }), ...format.schema };
  return {
    format: { type: 'json_schema', schema: fitSchema('anthropic', schema, 'format').schema },
    ...givenFields({ effort }),
  };
}
