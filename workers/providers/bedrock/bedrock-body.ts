import type * as Bedrock from '@aws-sdk/client-bedrock-runtime';
import { z } from 'zod';
import {
  type CacheTtl,
  type ImagePart,
  type Part,
  partsOf,
  type ToolCallPart,
  type Turn,
} from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import { fitSchema, useOf } from '../../../shared/models/json-schema.js';
import { claudeEffort, type ModelParameters, type Tool } from '../../../shared/models/model-parameters.js';
import { takesParameter } from '../../../shared/models/provider-support.js';
import { callsIn, toAlternating } from '../../../shared/protocol/alternating-turns.js';
import { keepThinking, readerOf } from '../claude-thinking.js';
import { argumentsOf, isCached, type ProviderRequest, resultParts, toFittingId } from '../provider.js';
import { asNumericValue, parseExactly } from '../reply/exact-json.js';

/** The SDK's type of a document does not say that it takes any JSON. */
type Json = NonNullable<Bedrock.ContentBlock.ToolUseMember['toolUse']['input']>;

/**
 * The limit of a reply with its thinking, where its caller names none. Without one the model's maximum is taken from
 * the account's tokens a minute at the start. https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html
 */
const defaultMaxTokens = 16_000;

/** How Bedrock is asked. */
export interface InputOptions {
  /** Whether it caches the beginnings of prompts that will be sent again; absent means off. */
  promptCache?: 'off' | 'auto';
}

/** The input of Converse and ConverseStream. */
export function toInput(request: ProviderRequest, { promptCache }: InputOptions = {}) {
  const marks = new CallersMarks(request);
  const input = toPlainInput(request, marks);
  return !marks.areThere && isCached(request, promptCache) ? withCachePoints(input) : input;
}

function toPlainInput(request: ProviderRequest, marks: CallersMarks): Bedrock.ConverseCommandInput {
  const { turns, model, maxOutputTokens, parameters = {}, omits } = request;
  const kept = keepThinking(request, 'bedrock', read);
  const { system, turns: alternating } = toAlternating(kept);
  const { temperature, topP, stop: stopSequences } = parameters;
  // Without a limit it is the model's own.
  const maxTokens = maxOutputTokens ?? (omits?.has('cap') ? undefined : defaultMaxTokens);
  // In the order in which the model reads them, so that the first marks count.
  const toolConfig = toToolConfig(turns, parameters, marks);
  const systemTurns = kept.filter(({ role }) => role === 'system').map(partsOf);
  const systemBlocks = system.flatMap((text, place) => [
    { text },
    ...marks.behind(systemTurns[place]?.at(-1)),
  ]);
  const messages = alternating.map((turn) => {
    return {
      role: turn.role,
      content: partsOf(turn).flatMap((part) => [...toBlocks(part), ...marks.behind(part)]),
    };
  });
  return {
    modelId: model,
    messages,
    inferenceConfig: givenFields({ maxTokens, temperature, topP, stopSequences }),
    ...(system.length > 0 && { system: systemBlocks }),
    ...givenFields({
      additionalModelRequestFields: toClaudesFields(request, maxTokens),
      toolConfig,
      outputConfig: toOutputConfig(parameters),
    }),
  };
}

/** In the words of Anthropic's API, to which Bedrock passes them: https://github.com/theopenco/llmgateway/pull/2593 */
function toClaudesFields({ model, parameters = {}, asksThinking }: ProviderRequest, maxTokens = Infinity) {
  if (!isClaude(model)) return undefined;
  const { topK: top_k, thinking = asksThinking ? 'adaptive' : undefined } = parameters;
  const display = asksThinking ? 'summarized' : undefined;
  // A budget has to be below the limit.
  const budget = typeof thinking === 'number' ? Math.min(thinking, maxTokens - 1) : undefined;
  const config = givenFields({
    type: budget === undefined ? 'adaptive' : 'enabled',
    budget_tokens: budget,
    display,
  });
  const fields = givenFields({ top_k, thinking: thinking && config });
  return Object.keys(fields).length > 0 ? fields : undefined;
}

const isClaude = (model: string): boolean => takesParameter('bedrock', 'thinking', model);

const cachePoint = { cachePoint: { type: 'default' as const } };

/**
 * The caller's own marks, which replace those of `withCachePoints`. A request may have four, so the first four are
 * sent. Nova takes none behind tools, calls and results, and other models take none at all.
 */
class CallersMarks {
  readonly areThere: boolean;
  readonly #takesAll: boolean;
  #left = 4;

  constructor({ turns, model, parameters, omits }: ProviderRequest) {
    const marked = [...(parameters?.tools ?? []), ...turns.flatMap(partsOf)].filter(cacheOf);
    this.areThere = marked.length > 0;
    this.#takesAll = isClaude(model);
    if (omits?.has('cache') || !(this.#takesAll || isNova(model))) this.#left = 0;
  }

  /** The mark behind a part or a tool, if it has one that is sent. */
  behind(part: Part | Tool | undefined): { cachePoint: Bedrock.CachePointBlock }[] {
    const cache = part && cacheOf(part);
    const isTaken =
      this.#takesAll || (part && 'type' in part && (part.type === 'text' || part.type === 'image'));
    if (cache === undefined || !isTaken || this.#left === 0) return [];
    this.#left -= 1;
    return cache === '1h' ? [{ cachePoint: { type: 'default', ttl: cache } }] : [cachePoint];
  }
}

const cacheOf = (part: Part | Tool): CacheTtl | undefined => ('cache' in part ? part.cache : undefined);
const isNova = (model: string): boolean => /\bnova\b/i.test(model);

/**
 * The input with marks behind what is cached: tools, system, and the last turn, which is the user's. Nova refuses those
 * behind tools and results, and other models all of them, also where they are no more than ignored elsewhere.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
 */
function withCachePoints(input: Bedrock.ConverseCommandInput): Bedrock.ConverseCommandInput {
  const { modelId = '', messages = [], system, toolConfig } = input;
  const takesAll = isClaude(modelId);
  if (!takesAll && !isNova(modelId)) return input;
  const { tools } = toolConfig ?? {};
  const marked = messages.map((message, place) => {
    const { content = [] } = message;
    const isLast = place === messages.length - 1 && (takesAll || !content.some((block) => block.toolResult));
    return isLast ? { ...message, content: [...content, cachePoint] } : message;
  });
  return {
    ...input,
    messages: marked,
    ...(system && { system: [...system, cachePoint] }),
    ...(takesAll && tools && { toolConfig: { ...toolConfig, tools: [...tools, cachePoint] } }),
  };
}

function toBlocks(part: Part): Bedrock.ContentBlock[] {
  switch (part.type) {
    case 'text':
      return [{ text: part.text }];
    case 'image':
      return toImage(part);
    case 'tool_call': {
      const input = parseExactly(argumentsOf(part), asNumericValue) as Json;
      return [{ toolUse: { toolUseId: toId(part.id), name: part.name, input } }];
    }
    case 'tool_result': {
      const toolUseId = toId(part.callId);
      const content = resultParts(part).flatMap((each): Bedrock.ToolResultContentBlock[] =>
        each.type === 'text' ? [{ text: each.text }] : toImage(each),
      );
      return [{ toolResult: { toolUseId, content, ...(part.isError && { status: 'error' }) } }];
    }
    case 'opaque':
      return read(part).map(toReasoning);
  }
}

const toId = (id: string): string => toFittingId(id, /^[\w-]{1,64}$/);

function toImage(image: ImagePart): Bedrock.ContentBlock.ImageMember[] {
  if ('url' in image) return [];
  const format = image.mediaType.slice('image/'.length) as Bedrock.ImageFormat;
  return [{ image: { format, source: { bytes: Buffer.from(image.data ?? '', 'base64') } } }];
}

/** Thinking that the model has signed, as it is in Bedrock's JSON. It comes back from a client. */
const thinking = z.union([
  z.strictObject({ reasoningText: z.strictObject({ text: z.string(), signature: z.string().optional() }) }),
  z.strictObject({ redactedContent: z.base64() }),
]);

export type Thinking = z.output<typeof thinking>;
const read = readerOf(thinking);

const toReasoning = (block: Thinking): Bedrock.ContentBlock => ({
  reasoningContent:
    'redactedContent' in block ? { redactedContent: Buffer.from(block.redactedContent, 'base64') } : block,
});

/**
 * Converse has no choice `none`, and wants tools wherever the conversation has calls: there they are sent, and the tape
 * refuses a call in the reply. Elsewhere they are left out.
 */
function toToolConfig(
  turns: readonly Turn[],
  { tools = [], toolChoice }: ModelParameters,
  marks: CallersMarks,
) {
  const calls = callsIn(turns);
  if (toolChoice === 'none' && calls.length === 0) return undefined;
  if (tools.length === 0) return calls.length === 0 ? undefined : { tools: toolsOf(calls) };
  const blocks = tools.flatMap((tool) => [toTool(tool), ...marks.behind(tool)]);
  return { tools: blocks, ...givenFields({ toolChoice: toChoice(toolChoice) }) };
}

function toTool(tool: Tool): Bedrock.Tool {
  const { name, description, parameters = { properties: {} }, strict } = tool;
  const json = fitSchema('bedrock', parameters, useOf(tool)).schema as Json;
  const details = { ...(description && { description }), ...(strict && { strict }) };
  return { toolSpec: { name, inputSchema: { json }, ...details } };
}

/** Tools that stand for those of the calls: only their names are known. */
const toolsOf = (calls: readonly ToolCallPart[]): Bedrock.Tool[] =>
  [...new Set(calls.map(({ name }) => name))].map((name) => ({
    toolSpec: { name, description: 'Not available any more.', inputSchema: { json: { type: 'object' } } },
  }));

function toChoice(choice: ModelParameters['toolChoice']) {
  if (typeof choice === 'object') return { tool: { name: choice.name } };
  if (choice === 'required') return { any: {} };
  return choice === 'auto' ? { auto: {} } : undefined;
}

function toOutputConfig({ format, reasoningEffort }: ModelParameters): Bedrock.OutputConfig | undefined {
  const { data: effort } = claudeEffort.safeParse(reasoningEffort);
  if (format?.type !== 'json_schema') return effort && { effort };
  const { name, description } = format;
  const schema = JSON.stringify(fitSchema('bedrock', format.schema, 'format').schema);
  return {
    textFormat: {
      type: 'json_schema',
      structure: { jsonSchema: { schema, name, ...givenFields({ description }) } },
    },
    ...givenFields({ effort }),
  };
}
