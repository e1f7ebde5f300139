import type Anthropic from '@anthropic-ai/sdk';
import { z } from 'zod';
import type { ImagePart, OpaquePart, Part } from '../../shared/conversation.js';
import { givenFields } from '../../shared/given-fields.js';
import { readJson } from '../../shared/json.js';
import { fitSchema } from '../../shared/protocol/json-schema.js';
import {
  claudeEffort,
  type ModelParameters,
  type Tool,
  useOf,
} from '../../shared/protocol/model-parameters.js';
import { parseExactly } from './exact-json.js';
import { argumentsOf, resultText, toAlternating, toFittingId, withThinkingFirst } from './message-shaping.js';
import type { ProviderRequest } from './provider.js';

/**
 * The limit of a reply with its thinking, which a request must name, where its caller names none: Claude Code's own.
 */
const defaultMaxTokens = 32_000;
/** For older models, which take no more. */
const fewMaxTokens = 8192;

/** The body of a request for a message. */
export function toBody({ turns, model, maxOutputTokens, parameters = {}, omits }: ProviderRequest) {
  const { system, turns: alternating } = toAlternating(turns);
  const { stop: stop_sequences, tools } = parameters;
  return {
    model,
    max_tokens: maxOutputTokens ?? (omits?.has('cap') ? fewMaxTokens : defaultMaxTokens),
    messages: alternating.map((turn) => ({
      role: turn.role,
      content: typeof turn.content === 'string' ? turn.content : withThinkingFirst(turn).flatMap(toBlocks),
    })),
    ...givenFields({ system, stop_sequences, output_config: toOutputConfig(parameters) }),
    ...(tools && { tools: tools.map(toTool), ...givenFields({ tool_choice: toChoice(parameters) }) }),
  };
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
      const [tool_use_id, content] = [toId(part.callId), resultText(part)];
      return [{ type: 'tool_result', tool_use_id, content, ...(part.isError && { is_error: true }) }];
    }
    case 'opaque':
      return toThinking(part);
  }
}

const toId = (id: string): string => toFittingId(id, /^[\w-]+$/);

const toSource = (image: ImagePart): Anthropic.ImageBlockParam['source'] =>
  'url' in image
    ? { type: 'url', url: image.url }
    : { type: 'base64', media_type: image.mediaType, data: image.data ?? '' };

/** Thinking that Anthropic has signed. It comes back from a client, and goes on byte for byte. */
const thinking = z.array(
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
    z.strictObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  ]),
);

export type Thinking = z.output<typeof thinking>;

const toThinking = ({ provider, data }: OpaquePart): Thinking =>
  provider === 'anthropic' ? (thinking.safeParse(readJson(data)).data ?? []) : [];

function toTool(tool: Tool): Anthropic.Tool {
  const { name, description, parameters = { properties: {} }, strict } = tool;
  const input_schema = fitSchema('anthropic', parameters, useOf(tool)).schema as Anthropic.Tool.InputSchema;
  return { name, input_schema, ...(description && { description }), ...(strict && { strict }) };
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
