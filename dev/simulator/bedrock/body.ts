import type { Part, Turn } from '../../../shared/conversation.js';
import { givenFields, isObject, type JsonObject, readJson } from '../../../shared/json/json.js';
import * as claude from '../claude.js';
import { inputOf } from '../compose.js';
import type { WrittenBlock } from '../frames.js';
import { readImage } from '../part-rules.js';
import type { CacheBlock, CallParameters, MadeCall, PartRules, Refusal, Reply } from '../wire-format.js';
import { modelError } from './errors.js';

const maxImageLength = 5 * 1024 * 1024;

/** Converse's rules for tools, formats and parts, and those of Claude. */
export const bedrockPartRules: PartRules = {
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  callId: /^[a-zA-Z0-9_-]{1,64}$/,
  has: [
    'described tools',
    'tools of calls',
    'words in texts',
    'the user first',
    'the user last',
    'alternating roles',
  ],
  schema: claude.schemaFault,
  image: (data) => (data.length > maxImageLength ? `${maxImageLength} bytes at most` : undefined),
  places: {
    turns: ['messages'],
    choice: ['toolConfig'],
    format: ['output_config', 'format', 'schema'],
    tool: (index) => ['toolConfig', 'tools', index, 'toolSpec'],
    parameters: ['inputSchema', 'json'],
    part: (turn, part) => ['messages', turn, 'content', part],
  },
};

interface ToolSpec {
  readonly name: string;
  readonly description?: string;
  readonly strict?: boolean;
  readonly inputSchema: { json: JsonObject };
}

/** A block with one of these fields. */
export interface BedrockBlock {
  readonly text?: string;
  readonly image?: { format: string; source: { bytes: string } };
  readonly toolUse?: { toolUseId: string; name: string; input: JsonObject };
  readonly toolResult?: {
    toolUseId: string;
    status?: string;
    content: { text?: string; json?: JsonObject; image?: object }[];
  };
  readonly reasoningContent?: object;
  readonly cachePoint?: { ttl?: string };
}

/** A body of Converse, as far as it is read. */
export interface BedrockBody {
  readonly inferenceConfig?: {
    maxTokens?: number;
    temperature?: number;
    topP?: number;
    stopSequences?: string[];
  };
  readonly system?: BedrockBlock[];
  readonly toolConfig?: {
    readonly tools: { toolSpec?: ToolSpec; cachePoint?: object }[];
    readonly toolChoice?: { auto?: object; any?: object; tool?: { name: string } };
  };
  readonly outputConfig?: {
    readonly effort?: string;
    readonly textFormat?: {
      structure: { jsonSchema: { schema: string; name?: string; description?: string } };
    };
  };
  readonly messages?: { role: 'user' | 'assistant'; content?: BedrockBlock[] }[];
  readonly additionalModelRequestFields?: { thinking?: { display?: string } };
}

/** The conversation of a valid body. */
export function readBedrockTurns({ system = [], messages = [] }: BedrockBody): Turn[] {
  const turns = messages.map(({ role, content = [] }) => ({
    role,
    content: claude.joinThinking(content.filter(isContent).map(readBlock)),
  }));
  return system.length === 0
    ? turns
    : [{ role: 'system', content: claude.joinThinking(system.filter(isContent).map(readBlock)) }, ...turns];
}

/** The blocks of a valid body; a mark is a block of its own behind what it marks. */
export const readBedrockCacheBlocks = ({ system = [], messages = [] }: BedrockBody): CacheBlock[] =>
  [{ role: 'system', content: system } as const, ...messages].flatMap(({ role, content = [] }) =>
    content.flatMap((block, place) => {
      const { cachePoint: mark } = content[place + 1] ?? {};
      const ttl = mark && (mark.ttl === '1h' ? '1h' : '5m');
      return isContent(block) ? [{ role, part: readBlock(block), ttl }] : [];
    }),
  );

/** The error of Claude for more marks than it takes. */
export function checkBedrockRequest({
  system = [],
  messages = [],
  toolConfig,
}: BedrockBody): Refusal | undefined {
  const blocks: { cachePoint?: object }[] = [system, messages.flatMap(({ content = [] }) => content)].flat();
  const words = claude.findMarkFault(
    [...(toolConfig?.tools ?? []), ...blocks].map(({ cachePoint }) => cachePoint),
  );
  return words === undefined ? undefined : modelError(words);
}

const isContent = ({ cachePoint }: BedrockBlock): boolean => cachePoint === undefined;

function readBlock({ text = '', image, toolUse, toolResult, reasoningContent }: BedrockBlock): Part {
  if (reasoningContent !== undefined) return claude.thought('bedrock', reasoningContent);
  if (image !== undefined) return readImage(`image/${image.format}`, image.source.bytes);
  if (toolUse !== undefined) {
    const { toolUseId: id, name, input } = toolUse;
    return { type: 'tool_call', id, name, arguments: JSON.stringify(input) };
  }
  if (toolResult === undefined) return { type: 'text', text };
  const { toolUseId: callId, status, content } = toolResult;
  const result = content
    .map((each) => each.text ?? (each.image ? '(image)' : JSON.stringify(each.json)))
    .join('');
  return { type: 'tool_result', callId, content: result, ...(status === 'error' && { isError: true }) };
}

/** The parameters of a valid body. */
export function readBedrockParameters({
  inferenceConfig,
  toolConfig,
  outputConfig,
  additionalModelRequestFields: more,
  system = [],
  messages = [],
}: BedrockBody): CallParameters {
  const { maxTokens: maxOutputTokens, stopSequences: stop, ...sampling } = inferenceConfig ?? {};
  const { tools, toolChoice: choice } = toolConfig ?? {};
  const format = outputConfig?.textFormat?.structure.jsonSchema;
  // An empty one is no schema that Claude takes.
  const schema = readJson(format?.schema ?? '');
  return givenFields({
    maxOutputTokens,
    stop,
    ...sampling,
    tools: tools
      ?.flatMap(({ toolSpec = [] }) => toolSpec)
      .map(({ inputSchema, ...tool }) => ({ ...tool, parameters: inputSchema.json })),
    toolChoice: choice && (choice.tool ?? (choice.any ? 'required' : 'auto')),
    format: format && { ...format, type: 'json_schema' as const, schema: isObject(schema) ? schema : {} },
    reasoningEffort: outputConfig?.effort,
    showsThinking: more?.thinking && more.thinking.display === 'summarized',
    isMarked: claude.hasMark([system, ...messages.map(({ content = [] }) => content)]) || undefined,
  });
}

const writeThinking = (thinking: claude.Thinking) =>
  'redacted' in thinking ? { redactedContent: thinking.redacted } : { reasoningText: thinking };

export const bedrockSignatureOf = (call: MadeCall): string =>
  JSON.stringify(claude.thinkingOf(call).map(writeThinking));

const writeText = (text: string, pieces: readonly string[]): WrittenBlock => ({
  whole: { text },
  deltas: pieces.map((piece) => ({ text: piece })),
});

// A guardrail answers with the text its owner configured, so a blocked answer is not an empty one.
const guardrailText = 'Sorry, the model cannot answer this question.';

/** The blocks of a reply. */
export function writeBedrockBlocks(reply: Reply): WrittenBlock[] {
  if (reply.ending === 'blocked') return [writeText(guardrailText, [guardrailText])];
  return claude.writeBlocks(reply, {
    text: writeText,
    thinking(thinking) {
      const { text = '', ...end } =
        'redacted' in thinking ? { redactedContent: thinking.redacted } : thinking;
      const deltas = text === '' ? [end] : [{ text }, end];
      return {
        whole: { reasoningContent: writeThinking(thinking) },
        deltas: deltas.map((delta) => ({ reasoningContent: delta })),
      };
    },
    call(call, index) {
      const toolUse = { toolUseId: `tooluse_sim${reply.callId}_${index}`, name: call.name };
      return {
        whole: { toolUse: { ...toolUse, input: inputOf(call, reply.ending) } },
        start: { toolUse },
        deltas: call.pieces.map((input) => ({ toolUse: { input } })),
      };
    },
  });
}
