import { isDeepStrictEqual } from 'node:util';
import type { ProviderId } from '../../shared/contract.js';
import { type OpaquePart, type Part, partsOf, type Turn } from '../../shared/conversation.js';
import { resolve } from './fill.js';
import { isObject, type JsonObject } from './json.js';
import { snakeCase } from './refusal.js';
import { sign } from './signature.js';
import type { Reply } from './wire-format.js';

/** The rules of Claude, the same at Anthropic and at Bedrock. */

export const forcedChoiceText = 'tool_choice: type "tool" and "any" are not supported for this model.';
export const claudeEfforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const;
export const claudeCallId = /^[a-zA-Z0-9_-]+$/;

/** Claude's words for a hint that it does not take. */
export function claudeHintText(name: string): string {
  if (name === 'reasoningEffort') return 'This model does not support the effort parameter.';
  if (name === 'parallelToolCalls')
    return 'tool_choice: disable_parallel_tool_use is not supported for this model.';
  return `\`${snakeCase(name)}\` is deprecated for this model.`;
}

/** A piece of thinking, signed or redacted. */
export type Thinking = { readonly text: string; readonly signature: string } | { readonly redacted: string };

/** The thinking before the calls of a reply: one with words, one without, and one that is redacted. */
function thinkingOf(call: number): Thinking[] {
  const text = `Thought of call ${call}.`;
  const empty = { text: '', signature: sign(`${text} Without words.`) };
  return [{ text, signature: sign(text) }, empty, { redacted: sign(`${text} Redacted.`) }];
}

/** The thinking before the text of a reply; none in one that is not signed. */
export const thinkingBefore = ({ callId, isSigned }: Reply): Thinking[] =>
  isSigned ? thinkingOf(callId) : [];

interface BlockReader<Block> {
  readonly provider: ProviderId;
  thinkingIn(block: Block): object | undefined;
  read(block: Block): Part;
}

/** The parts of blocks; thinking that is not interrupted is one, with the JSON text of its blocks. */
export function readBlocks<Block>(blocks: readonly Block[], reader: BlockReader<Block>): Part[] {
  const { provider, thinkingIn, read } = reader;
  const parts: Part[] = [];
  let thinking: object[] = [];
  for (const block of blocks) {
    const thought = thinkingIn(block);
    if (thought === undefined) parts.push(...opaque(provider, thinking), read(block));
    thinking = thought === undefined ? [] : [...thinking, thought];
  }
  return [...parts, ...opaque(provider, thinking)];
}

const opaque = (provider: ProviderId, thinking: object[]): OpaquePart[] =>
  thinking.length === 0 ? [] : [{ type: 'opaque', provider, data: JSON.stringify(thinking) }];

/** Whether a turn has thinking that is not as `thinkingOf` gave it, as a provider writes it. */
export function hasForeignThinking(turn: Turn, write: (thinking: Thinking) => object): boolean {
  return partsOf(turn).some((part) => {
    if (part.type !== 'opaque') return false;
    const call = /Thought of call (\d+)\./.exec(part.data)?.[1];
    return !isDeepStrictEqual(JSON.parse(part.data), thinkingOf(Number(call)).map(write));
  });
}

/** Claude's words for the first fault of a schema: of a tool's only its root, unless it is strict. */
export function claudeSchemaFault(
  schema: JsonObject,
  { strict, index }: { strict?: boolean | undefined; index?: number },
): string | undefined {
  const place = index === undefined ? 'output_config.format.schema' : `tools.${index}.custom.input_schema`;
  const hasChoice = ['oneOf', 'anyOf', 'allOf'].some((keyword) => keyword in schema);
  if (index !== undefined && hasChoice)
    return `${place}: input_schema does not support oneOf, allOf, or anyOf at the top level`;
  const fault = index === undefined || strict === true ? findSchemaFault(schema) : undefined;
  return fault && `${place}: ${fault}`;
}

const annotations = ['title', 'description', 'default', '$schema', '$id', '$comment', 'examples'];
const taken = new Set([
  ...annotations,
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf', 'allOf'],
  ...['$ref', '$defs', 'definitions', 'format', 'minItems', 'pattern'],
]);
const typing = ['type', 'enum', 'const', 'anyOf', 'allOf', '$ref'];
const formats = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '));
const untakenPattern = /\(\?(?:[=!]|<[=!])|\\[1-9bB]/;

/**
 * Claude's words for the first keyword that it does not take in the schema of a format or of a strict tool
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations).
 */
function findSchemaFault(root: JsonObject): string | undefined {
  const above = new Set<object>();
  const done = new Set<object>();
  const visit = (schema: unknown): string | undefined => {
    if (!isObject(schema)) return 'Schema must be an object';
    if (above.has(schema)) return 'Circular references are not supported';
    if (done.has(schema)) return undefined;
    above.add(schema);
    const fault = schemasIn(schema, root).reduce<string | undefined>(
      (found, inner) => found ?? visit(inner),
      faultOf(schema),
    );
    above.delete(schema);
    done.add(schema);
    return fault;
  };
  return visit(root);
}

function faultOf(schema: JsonObject): string | undefined {
  if ('oneOf' in schema) return "Schema type 'oneOf' is not supported";
  if (!typing.some((keyword) => keyword in schema)) return 'Schema must have a type';
  const types = [schema.type ?? 'object'].flat();
  const untaken = Object.keys(schema).filter((keyword) => !taken.has(keyword));
  if (untaken.length > 0)
    return `For '${types.join(', ')}' type, properties ${untaken.sort().join(', ')} are not supported`;
  const isTyped = 'properties' in schema || ('type' in schema && types.includes('object'));
  if (isTyped && schema.additionalProperties !== false)
    return "For 'object' type, 'additionalProperties' must be explicitly set to false";
  const { minItems = 0, format, pattern } = schema;
  if (minItems !== 0 && minItems !== 1)
    return "For 'array' type, 'minItems' values other than 0 or 1 are not supported";
  if (format !== undefined && !formats.has(String(format)))
    return `String format '${format}' is not supported`;
  if (untakenPattern.test(String(pattern))) return 'Pattern has an unsupported feature';
  const values = [...((schema.enum as unknown[] | undefined) ?? []), schema.const];
  return values.some((value) => typeof value === 'object' && value !== null)
    ? 'Enum values must be primitives'
    : undefined;
}

function schemasIn(schema: JsonObject, root: JsonObject): unknown[] {
  const { $ref, items, properties, $defs, definitions, anyOf, allOf } = schema;
  const maps = [properties, $defs, definitions].filter(isObject).flatMap(Object.values);
  const lists = [anyOf, allOf].filter(Array.isArray).flat();
  const target = typeof $ref === 'string' ? [$ref.startsWith('#') ? resolve(root, $ref) : undefined] : [];
  return [...maps, ...lists, ...(items === undefined ? [] : [items]), ...target];
}
