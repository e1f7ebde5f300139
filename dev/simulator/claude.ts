import { z } from 'zod';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Part, Turn } from '../../shared/conversation.js';
import { isObject, type JsonObject } from '../../shared/json/json.js';
import { contentOf, type WrittenBlock } from './blocks.js';
import type { Reply, ReplyCall } from './exchange.js';
import { type Breach, type Refusal, snakeCase } from './refusal.js';
import { schemasIn } from './schemas.js';
import { type MadeCall, sign } from './signature.js';

/** The rules of Claude, the same at Anthropic and at Bedrock. */

export const claudeEfforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const;

/** How newer models are asked to think (`ThinkingConfigAdaptive` of Anthropic's SDK). */
export const thinkingConfig = z.strictObject({
  type: z.enum(['adaptive', 'disabled']),
  display: z.enum(['summarized', 'omitted']).nullish(),
});

/** The turns up to the last with a mark of what may be cached: anthropic's or bedrock's. */
export function countMarked(contents: readonly (string | readonly object[])[]): number | undefined {
  const isMarked = (block: object) => Object(block).cache_control ?? Object(block).cachePoint;
  const given = contents.filter(({ length }) => length > 0);
  const last = given.findLastIndex((blocks) => typeof blocks !== 'string' && blocks.some(isMarked));
  return last + 1 || undefined;
}

/** The errors of the models, of a provider that passes on their words by `refuse`. */
export const claudeErrors = (refuse: (words: string) => Refusal) => ({
  hint(name: string) {
    if (name === 'reasoningEffort') return refuse('This model does not support the effort parameter.');
    if (name !== 'parallelToolCalls') return refuse(`\`${snakeCase(name)}\` is deprecated for this model.`);
    return refuse('tool_choice: disable_parallel_tool_use is not supported for this model.');
  },
  forcedChoice: () => refuse('tool_choice: type "tool" and "any" are not supported for this model.'),
  signature: () => refuse('messages: Invalid `signature` in `thinking` block'),
  // https://github.com/anomalyco/opencode/issues/48637, https://github.com/kirodotdev/KiroCrew/pull/11513
  unbound({ turn, part }: { turn: number; part: number }, breach: Breach): Refusal | undefined {
    if (breach === 'foreign') return undefined;
    const gap = ' The `thinking` block that preceded this one when it was created is missing.';
    return refuse(
      `messages.${turn}.content.${part}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block". That setting requires the \`thinking-binding-controls-2026-08-01\` value in the \`anthropic-beta\` header.${breach === 'gap' ? gap : ''}`,
    );
  },
});

/** A piece of thinking, signed or redacted. */
export type Thinking = { readonly text: string; readonly signature: string } | { readonly redacted: string };

/** The thinking before a call: one with words, one without, and one that is redacted. */
export const thinkingOf = (call: MadeCall): Thinking[] => [
  { text: `I call ${call.name}.`, signature: sign(call) },
  { text: '', signature: sign(call, 'without words') },
  { redacted: sign(call, 'redacted') },
];

interface BlockWriter {
  thinking(thinking: Thinking): WrittenBlock;
  text(text: string, pieces: readonly string[]): WrittenBlock;
  call(call: ReplyCall, index: number): WrittenBlock;
}

/** The blocks of a reply: its thinking if it is signed, its text, unless there are calls alone, and its calls. */
export function writeBlocks(reply: Reply, { thinking, text: writeText, call }: BlockWriter): WrittenBlock[] {
  const { ending, text, pieces, calls, isSigned, thoughts } = reply;
  if (ending === 'empty' || ending === 'blocked' || ending === 'refused') return [];
  const [first] = calls;
  const [before = [], between = []] = thoughts.map((each) => [thinking(each)]);
  return [
    ...before,
    ...(isSigned && first ? thinkingOf(first).map(thinking) : []),
    ...(text === '' && (first || thoughts.length > 0) ? [] : [writeText(text, pieces)]),
    ...between,
    ...calls.map(call),
  ];
}

/** A block of thinking as a part. */
export const thought = (provider: ProviderId, block: object): Part => ({
  type: 'opaque',
  provider,
  data: JSON.stringify([block]),
});

/** The content of a turn: thinking that is not interrupted is one part, with the JSON text of its blocks. */
export function joinThinking(parts: readonly Part[]): Turn['content'] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.type === 'opaque' && last?.type === 'opaque')
      joined.splice(-1, 1, { ...last, data: `${last.data.slice(0, -1)},${part.data.slice(1)}` });
    else joined.push(part);
  }
  return contentOf(joined);
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
  const older = index === undefined ? undefined : findToolFault(schema);
  if (older) return `${place}${older}`;
  const fault = index === undefined || strict === true ? findSchemaFault(schema) : undefined;
  return fault && `${place}: ${fault}`;
}

/**
 * The schema of every tool has to be one of the draft of 2020-12 (https://github.com/hyperdxio/hyperdx/pull/2925), and
 * the names of the arguments themselves have a pattern.
 */
function findToolFault(root: JsonObject): string | undefined {
  for (const { schema } of schemasIn(root)) {
    const { required, exclusiveMinimum, exclusiveMaximum, type } = Object(schema);
    const flags = [required, exclusiveMinimum, exclusiveMaximum];
    if (Array.isArray(schema) || type === 'any' || flags.some((flag) => typeof flag === 'boolean'))
      return ': JSON schema is invalid. It must match JSON Schema draft 2020-12';
  }
  const names = Object.keys(root.properties ?? {});
  return names.every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name))
    ? undefined
    : ".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
}

const annotations = ['title', 'description', 'default', '$schema', '$id', '$comment', 'examples'];
const taken = new Set([
  ...annotations,
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'anyOf',
  'allOf',
  '$ref',
  '$defs',
  'definitions',
  'format',
  'minItems',
  'pattern',
]);
const typing = ['type', 'enum', 'const', 'anyOf', 'allOf', '$ref'];
const formats = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '));
const untakenPattern = /\(\?(?:[=!]|<[=!])|\\[1-9bB]/;

/**
 * Claude's words for the first keyword that it does not take in the schema of a format or of a strict tool
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations).
 */
function findSchemaFault(root: JsonObject): string | undefined {
  for (const { schema, isCircle } of schemasIn(root)) {
    if (isCircle) return 'Circular references are not supported';
    const fault = isObject(schema) ? faultOf(schema) : 'Schema must be an object';
    if (fault !== undefined) return fault;
  }
  return undefined;
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
