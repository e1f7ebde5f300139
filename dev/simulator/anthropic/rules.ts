import { z } from 'zod';
import type { JsonObject } from '../../../shared/json/json.js';
import { claudeEfforts, thinkingConfig } from '../claude.js';
import { isBlank } from '../json.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { type Complaints, checkShape, dotted, type Issue, json, text, unread } from '../shape.js';
import { invalid } from './errors.js';

const retiredParameters = ['temperature', 'top_p', 'top_k'];

/** The error for the first rule of Messages that a body violates, by the rules of newer models. */
export function checkAnthropicRequest(body: JsonObject): Refusal | undefined {
  const retired = retiredParameters.find((name) => name in body);
  if (retired !== undefined) return invalid(`\`${retired}\` is deprecated for this model.`);
  return checkShape(bodyShape, body, anthropicComplaints) ?? checkTexts(body as AnthropicBody);
}

function checkTexts({ stop_sequences: stops = [], system = [], messages }: AnthropicBody) {
  if (stops.some(isBlank)) return invalid('stop_sequences: each stop sequence must contain non-whitespace');
  if (messages.length === 0) return invalid('messages: at least one message is required');
  return (
    checkText(system, 'system') ??
    firstRefusal(messages, ({ content }, index) =>
      content.length === 0
        ? invalid(
            `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
          )
        : checkText(content, 'messages'),
    ) ??
    checkSystem(messages) ??
    checkOrder(messages)
  );
}

function checkText(content: string | AnthropicBlock[], at: string): Refusal | undefined {
  const texts =
    typeof content === 'string'
      ? [content]
      : content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const blank = texts.find(isBlank);
  if (blank === undefined) return undefined;
  const must = blank === '' ? 'be non-empty' : 'contain non-whitespace text';
  return invalid(`${at}: text content blocks must ${must}`);
}

/**
 * Newer models take system texts behind messages of the user, and not right before another one of the user's.
 * https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/change-tools-or-instructions
 */
function checkSystem(messages: { role: string }[]): Refusal | undefined {
  return firstRefusal(messages, ({ role }, index) => {
    if (role !== 'system') return undefined;
    const refuse = (words: string) => invalid(`messages.${index}: ${words}`);
    if (index === 0) return refuse("use the top-level 'system' parameter for the initial system prompt");
    const [before, after] = [messages[index - 1], messages[index + 1]];
    if (before?.role !== 'user') return refuse('a system message must immediately follow a user turn');
    return after?.role === 'user' ? refuse('a system message must not precede a user turn') : undefined;
  });
}

function checkOrder(messages: { role: string }[]): Refusal | undefined {
  if (messages[0]?.role !== 'user') return invalid('messages: first message must use the "user" role');
  if (messages.at(-1)?.role !== 'assistant') return undefined;
  return invalid(
    'This model does not support assistant message prefill. The conversation must end with a user message.',
  );
}

const cache = {
  cache_control: z.strictObject({ type: z.literal('ephemeral'), ttl: text.optional() }).nullish(),
};
const parallel = { disable_parallel_tool_use: z.boolean().optional() };
const tool = z.strictObject({
  type: z.literal('custom').nullish(),
  name: text,
  description: text.optional(),
  input_schema: json,
  strict: z.boolean().optional(),
  eager_input_streaming: z.boolean().nullish(),
  ...cache,
});
const choice = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('auto'), ...parallel }),
  z.strictObject({ type: z.literal('any'), ...parallel }),
  z.strictObject({ type: z.literal('tool'), name: text, ...parallel }),
  z.strictObject({ type: z.literal('none') }),
]);
const format = z.strictObject({ type: z.literal('json_schema'), schema: json });

const textBlock = z.strictObject({ type: z.literal('text'), text, citations: z.null().optional(), ...cache });
const source = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('base64'), media_type: text, data: text }),
  z.strictObject({ type: z.literal('url'), url: text.regex(/^https?:/) }),
]);
const image = z.strictObject({ type: z.literal('image'), source, ...cache });
const result = z.strictObject({
  type: z.literal('tool_result'),
  tool_use_id: text,
  is_error: z.boolean().optional(),
  ...cache,
  content: z.union([text, z.array(textBlock)]).optional(),
});
const call = z.strictObject({ type: z.literal('tool_use'), id: text, name: text, input: json, ...cache });
const thinking = z.strictObject({ type: z.literal('thinking'), thinking: text, signature: text });
const redacted = z.strictObject({ type: z.literal('redacted_thinking'), data: text });
const block = z.discriminatedUnion('type', [textBlock, image, result, call, thinking, redacted]);

/** A body of Messages (https://docs.anthropic.com/en/api/messages). */
const bodyShape = z.strictObject({
  model: text,
  stream: z.boolean().optional(),
  max_tokens: z.int().min(1),
  stop_sequences: z.array(text).optional(),
  system: z.union([text, z.array(textBlock)]).optional(),
  tools: z.array(tool).optional(),
  tool_choice: choice.optional(),
  output_config: z
    .strictObject({ effort: z.enum(claudeEfforts).nullish(), format: format.nullish() })
    .optional(),
  messages: z.array(
    z.strictObject({
      role: z.enum(['user', 'assistant', 'system']),
      content: z.union([text, z.array(block)]),
    }),
  ),
  ...cache,
  thinking: thinkingConfig.optional(),
  ...unread('container diagnostics inference_geo metadata service_tier speed user_profile_id workspace_id'),
});

export type AnthropicBody = z.output<typeof bodyShape>;
export type AnthropicBlock = z.output<typeof block>;

/** Anthropic's words for a body of the wrong shape. */
const anthropicComplaints: Complaints = {
  unknown: (path, [key = '']) => invalid(`${dotted([...path, key])}: Extra inputs are not permitted`),
  wrong(path, value, issue) {
    if (value === undefined) return invalid(`${dotted(path)}: Field required`);
    return invalid(`${dotted(path)}: Input should be ${wanted(issue)}`);
  },
};

const typeNames: Record<string, string> = {
  int: 'integer',
  number: 'integer',
  array: 'list',
  record: 'dictionary',
};

function wanted(issue: Issue): string {
  if (issue.code === 'too_small') return `greater than or equal to ${issue.minimum}`;
  if (issue.code === 'invalid_value') return issue.values.map((value) => `'${String(value)}'`).join(' or ');
  return issue.code === 'invalid_type'
    ? `a valid ${typeNames[issue.expected] ?? issue.expected}`
    : 'one of its forms';
}
