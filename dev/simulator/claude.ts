import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Part, Turn } from '../../shared/conversation.js';
import { isObject, type JsonObject } from '../../shared/json/json.js';
import { splitText } from './echo.js';
import { contentOf, type WrittenBlock } from './frames.js';
import { formatTexts, schemasIn } from './schemas.js';
import { sign } from './seals.js';
import {
  type Breach,
  type Ending,
  type Fault,
  firstFault,
  type MadeCall,
  type Place,
  type Refusal,
  type Reply,
  type ReplyBlock,
  type ReplyCall,
  snakeCase,
  type Thought,
} from './wire-format.js';

/** Whether a block marks what may be cached: anthropic's or bedrock's. */
export const hasMark = (contents: readonly (string | readonly object[])[]): boolean =>
  contents.some(
    (blocks) =>
      typeof blocks !== 'string' &&
      blocks.some((block) => (Object(block).cache_control ?? Object(block).cachePoint) != null),
  );

/** The words for more marks than are taken: https://github.com/tghamm/Anthropic.SDK/issues/50 */
export function findMarkFault(marks: readonly unknown[]): string | undefined {
  const found = marks.filter((mark) => mark != null).length;
  return found > 4 ? `A maximum of 4 blocks with cache_control may be provided. Found ${found}.` : undefined;
}

/** Claude's words for what it does not take, by the names that Claude Code has for their classes. */
const rejections = {
  // https://github.com/anthropics/claude-code/issues/61412
  mid_conv_system: "role 'system' is not supported on this model",
  // https://github.com/horselock/claude-code-proxy/pull/14
  cache_control_field: 'system.1.cache_control.ephemeral.scope: Extra inputs are not permitted',
  thinking_signature: 'messages.1.content.0: Invalid `signature` in `thinking` block',
  // https://github.com/pensarai/apex/pull/890
  'thinking_type:adaptive': 'adaptive thinking is not supported on this model',
  // https://github.com/Sylinko/Everywhere/issues/410
  'thinking_type:enabled':
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
  // https://github.com/anomalyco/models.dev/pull/1765
  structured_outputs_unsupported: 'output_config.format: Extra inputs are not permitted',
  effort_unsupported: 'This model does not support the effort parameter.',
  // https://github.com/anthropics/claude-code/issues/19822
  media_budget: 'Too much media: 0 document pages + 101 images > 100',
  // https://github.com/anthropics/claude-code/issues/8646
  image_block: 'Could not process image',
  // https://github.com/anthropics/claude-code/issues/5174
  document_block: 'messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.',
  // https://github.com/docker/docker-agent/issues/569
  context_limit:
    'input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again',
  // https://github.com/QuantumNous/new-api/issues/2975
  beta_header:
    'Unexpected value(s) `<beta>` for the `anthropic-beta` header. Please consult our documentation at docs.anthropic.com or try again without the header.',
};

/** The errors of the models, of a provider that passes on their words by `refuse`. */
export const claudeErrors = (refuse: (words: string) => Refusal) => ({
  hint(name: string) {
    if (name === 'reasoningEffort') return refuse('This model does not support the effort parameter.');
    if (name !== 'parallelToolCalls') return refuse(`\`${snakeCase(name)}\` is deprecated for this model.`);
    return refuse('tool_choice: disable_parallel_tool_use is not supported for this model.');
  },
  rejected(rejection: string, beta: string): Refusal | undefined {
    const words = new Map(Object.entries(rejections)).get(rejection);
    return words === undefined ? undefined : refuse(words.replace('<beta>', beta));
  },
  forcedChoice: () => refuse('tool_choice: type "tool" and "any" are not supported for this model.'),
  signature: () => refuse('messages: Invalid `signature` in `thinking` block'),
  // https://github.com/anomalyco/opencode/issues/48637, https://github.com/kirodotdev/KiroCrew/pull/11513
  unbound({ turn, part }: Place, breach: Breach): Refusal | undefined {
    if (breach === 'foreign') return undefined;
    const gap = ' The `thinking` block that preceded this one when it was created is missing.';
    return refuse(
      `messages.${turn}.content.${part}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block". That setting requires the \`thinking-binding-controls-2026-08-01\` value in the \`anthropic-beta\` header.${breach === 'gap' ? gap : ''}`,
    );
  },
});

/** Why a reply ended: in a word of the provider's own for its ending, or in one that both providers have. */
export function stopReasonOf(
  { ending, endsAs, stoppedBy, calls }: Reply,
  own: Partial<Record<Ending, string>>,
): string {
  if (endsAs !== undefined) return endsAs;
  if (ending === 'length') return 'max_tokens';
  const finished = calls.length > 0 ? 'tool_use' : 'end_turn';
  return own[ending] ?? (stoppedBy === undefined ? finished : 'stop_sequence');
}

/** A piece of thinking, signed or redacted. */
export type Thinking = Thought | { readonly redacted: string };

/** The thinking before a call: one with words, one without, and one that is redacted. */
export const thinkingOf = (call: MadeCall): Thinking[] => [
  { text: `I call ${call.name}.`, signature: sign(call) },
  { text: '', signature: sign(call, 'without words') },
  { redacted: sign(call, 'redacted') },
];

type OwnBlock = Extract<ReplyBlock, { search: string } | { raw: JsonObject }>;

interface BlockWriter {
  thinking(thinking: Thinking): WrittenBlock;
  text(text: string, pieces: readonly string[]): WrittenBlock;
  call(call: ReplyCall, index: number): WrittenBlock;
  /** Blocks that only one provider has. */
  own?(block: OwnBlock, place: number): WrittenBlock[];
}

/** The blocks of a reply: its thinking if it is signed, its text, unless there are calls alone, and its calls. */
export function writeBlocks(
  reply: Reply,
  { thinking, text: writeText, call, own }: BlockWriter,
): WrittenBlock[] {
  const { ending, text, pieces, calls, isSigned, thoughts, blocks } = reply;
  if (blocks !== undefined)
    return blocks.flatMap((block, place) => {
      if ('thought' in block) return thinking(block.thought);
      if ('call' in block) return call(block.call, place);
      return 'text' in block ? writeText(block.text, splitText(block.text)) : (own?.(block, place) ?? []);
    });
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

/** Claude's rules for a schema: of a tool's only its root and the draft, unless it is strict. */
export function schemaFault(
  root: JsonObject,
  { strict, index }: { strict?: boolean | undefined; index?: number | undefined },
): Fault | undefined {
  const isTool = index !== undefined;
  if (isTool && ['oneOf', 'anyOf', 'allOf'].some((keyword) => keyword in root))
    return [[], 'no oneOf, anyOf or allOf at the top level'];
  const names = isTool ? Object.keys(root.properties ?? {}) : [];
  if (!names.every((name) => /^[a-zA-Z0-9_.-]{1,64}$/.test(name)))
    return [['properties'], "keys like '^[a-zA-Z0-9_.-]{1,64}$'"];
  return firstFault(schemasIn(root), ({ schema, path, isCircle }) => {
    const expected =
      (isTool && !isOfDraft(schema) ? 'JSON Schema draft 2020-12' : undefined) ??
      (!isTool || strict === true ? (isCircle ? 'no circle' : expectedOf(schema)) : undefined);
    return expected === undefined ? undefined : [path, expected];
  });
}

/** Whether it can be of the draft of 2020-12: https://github.com/hyperdxio/hyperdx/pull/2925 */
function isOfDraft(schema: unknown): boolean {
  const { required, exclusiveMinimum, exclusiveMaximum, type } = Object(schema);
  const flags = [required, exclusiveMinimum, exclusiveMaximum];
  return !(Array.isArray(schema) || type === 'any' || flags.some((flag) => typeof flag === 'boolean'));
}

const typing = ['type', 'enum', 'const', 'anyOf', 'allOf', '$ref'];
const others = `title description default $schema $id $comment examples properties required additionalProperties
  items $defs definitions format minItems pattern`;
const taken = new Set([...typing, ...others.split(/\s+/)]);
const untakenPattern = /\(\?(?:[=!]|<[=!])|\\[1-9bB]/;

/**
 * The words for what Claude expects instead of a schema of a format or of a strict tool
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations).
 */
function expectedOf(schema: unknown): string | undefined {
  if (!isObject(schema)) return 'an object';
  if (!typing.some((keyword) => keyword in schema)) return 'a type';
  const untaken = Object.keys(schema).find((keyword) => !taken.has(keyword));
  if (untaken !== undefined) return `no ${untaken}`;
  const { type, minItems = 0, format, pattern, enum: values = [], additionalProperties } = schema;
  const isTyped = 'properties' in schema || [type].flat().includes('object');
  if (isTyped && additionalProperties !== false) return 'additionalProperties that are false';
  if (minItems !== 0 && minItems !== 1) return 'minItems of 0 or 1';
  if (format !== undefined && !formatTexts.has(String(format))) return `no format ${format}`;
  if (untakenPattern.test(String(pattern))) return 'a pattern of other features';
  const isDeep = [values, schema.const].flat().some((value) => typeof value === 'object' && value !== null);
  return isDeep ? 'an enum of primitives' : undefined;
}
