import type { Part, Turn } from '../../../shared/conversation.js';
import { contentOf, type WrittenBlock } from '../blocks.js';
import { hasForeignThinking, readBlocks, type Thinking, thinkingBefore } from '../claude.js';
import { inputOf } from '../compose-calls.js';
import { readImage } from '../image.js';
import { isObject, type JsonObject } from '../json.js';
import type { CallParameters, Reply } from '../wire-format.js';
import type { BedrockBlock, BedrockBody } from './shapes.js';

/** The content of a turn. */
export const readBedrockContent = (blocks: readonly BedrockBlock[]): Turn['content'] =>
  contentOf(
    readBlocks(blocks, {
      provider: 'bedrock',
      thinkingIn: ({ reasoningContent }) => reasoningContent,
      read: readBlock,
    }),
  );

function readBlock({ text = '', image, toolUse, toolResult }: BedrockBlock): Part {
  if (image !== undefined) return readImage(`image/${image.format}`, image.source.bytes);
  if (toolUse !== undefined) {
    const { toolUseId: id, name, input } = toolUse;
    return { type: 'tool_call', id, name, arguments: JSON.stringify(input) };
  }
  if (toolResult === undefined) return { type: 'text', text };
  const { toolUseId: callId, status, content } = toolResult;
  const said = content.map((part) => ('text' in part ? part.text : JSON.stringify(part.json))).join('');
  return { type: 'tool_result', callId, content: said, ...(status === 'error' && { isError: true }) };
}

/** The tools of a body, and the form of the reply that it asks for. */
export function readBedrockTools({ toolConfig, outputConfig }: BedrockBody): CallParameters {
  const { tools, toolChoice: choice } = toolConfig ?? {};
  const format = outputConfig?.textFormat?.structure.jsonSchema;
  return {
    tools: tools?.map(({ toolSpec: { inputSchema, ...tool } }) => ({
      ...tool,
      parameters: inputSchema.json,
    })),
    toolChoice: choice && (choice.tool ?? (choice.any ? 'required' : 'auto')),
    format: format && { ...format, type: 'json_schema', schema: parse(format.schema) },
    reasoningEffort: outputConfig?.effort,
  };
}

/** The object of a JSON text; an empty one, which is no schema that Claude takes, if it has none. */
function parse(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

const writeThinking = (thinking: Thinking) =>
  'redacted' in thinking ? { redactedContent: thinking.redacted } : { reasoningText: thinking };

export const hasForeignBedrockThinking = (turn: Turn): boolean => hasForeignThinking(turn, writeThinking);

/** The blocks before the text of a reply. */
export const writeBedrockThinking = (reply: Reply): WrittenBlock[] =>
  thinkingBefore(reply).map((thinking) => {
    const { text = '', ...end } = 'redacted' in thinking ? { redactedContent: thinking.redacted } : thinking;
    const deltas = text === '' ? [end] : [{ text }, end];
    return {
      whole: { reasoningContent: writeThinking(thinking) },
      deltas: deltas.map((delta) => ({ reasoningContent: delta })),
    };
  });

/** The blocks behind the text of a reply. */
export const writeBedrockCalls = ({ callId, calls, ending }: Reply): WrittenBlock[] =>
  calls.map((call, index) => {
    const toolUse = { toolUseId: `tooluse_sim${callId}_${index}`, name: call.name };
    return {
      whole: { toolUse: { ...toolUse, input: inputOf(call, ending) } },
      start: { toolUse },
      deltas: call.pieces.map((input) => ({ toolUse: { input } })),
    };
  });
