import { z } from 'zod';
import { isObject, type JsonObject } from '../json/json.js';
import { claudeEffort, modelParametersSchema } from '../models/model-parameters.js';
import { check, describeIssue } from '../validation.js';

/**
 * The body of Anthropic's Messages API, as far as other providers are asked for it; a field that is not here is
 * ignored. https://platform.claude.com/docs/en/api/messages, and `MessageCreateParamsBase` of @anthropic-ai/sdk.
 */

/** Thrown for the first thing that the provider cannot do; the pointer leads into the body (RFC 6901). */
export class RefusedBody extends Error {
  override readonly name = 'RefusedBody';

  constructor(
    readonly pointer: string,
    readonly detail: string,
  ) {
    super('The provider cannot be asked for this body.');
  }
}

/** Names the type that is none of the known ones, if it is a word. */
const unknownType = (known: string) => (issue: { input?: unknown }) => {
  if (!isObject(issue.input)) return undefined;
  const { type } = issue.input;
  return isWord(type) ? `must be ${known}: ${type} is not supported` : `must be ${known}`;
};

const isWord = (value: unknown): value is string => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value);

const object = z.custom<JsonObject>(isObject, { error: 'must be an object' });

const cache_control = z
  .object({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).nullish() })
  .nullish();

const text = z.object({
  type: z.literal('text'),
  text: z.string(),
  cache_control,
  citations: z.array(z.unknown()).max(0, { error: 'are not supported by this provider' }).nullish(),
});

const base64 = z.object({ type: z.literal('base64'), media_type: z.string(), data: z.string() });

const image = z.object({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [base64, z.object({ type: z.literal('url'), url: z.string() })], {
    error: unknownType('base64 or url'),
  }),
  cache_control,
});

const reference = z.object({ type: z.literal('tool_reference'), tool_name: z.string(), cache_control });

/** A list up to its first element that is wrong: the errors of thousands would take half a second. */
const listOf = <Item extends z.ZodType>(item: Item) =>
  z.array(z.unknown()).transform((given, context) => {
    const read: z.output<Item>[] = [];
    for (const [place, each] of given.entries()) {
      const { data, error } = item.safeParse(each, { error: describeIssue });
      const [issue] = error?.issues ?? [];
      if (issue) {
        context.addIssue({ code: 'custom', message: issue.message, path: [place, ...issue.path] });
        return z.NEVER;
      }
      read.push(data as z.output<Item>);
    }
    return read;
  });

/** A text is one block. */
const asBlocks = (content: unknown): unknown =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

const blocks = <Block extends z.ZodType>(block: Block) => z.preprocess(asBlocks, listOf(block));

const resultContent = z.discriminatedUnion('type', [text, image, reference], {
  error: unknownType('text, image or tool_reference'),
});

const result = z.object({
  type: z.literal('tool_result'),
  tool_use_id: z.string(),
  content: z.preprocess(asBlocks, listOf(resultContent).nullish()),
  is_error: z.boolean().nullish(),
  cache_control,
});

const call = z.object({
  type: z.literal('tool_use'),
  id: z.string().min(1),
  name: z.string().min(1),
  input: object,
  cache_control,
  /** Who has called the tool: of replies, which clients send back. */
  caller: z.unknown().optional(),
});

const thinking = z.object({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() });
const redacted = z.object({ type: z.literal('redacted_thinking'), data: z.string() });

const tool = z.object({
  // In Anthropic's words, by which Claude Code knows the tool that it has to leave out.
  type: z
    .literal('custom', {
      error: ({ input }) =>
        isWord(input)
          ? `Input tag '${input}' found using 'type' does not match any of the expected tags: 'custom'`
          : 'must be custom',
    })
    .nullish(),
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: object,
  strict: z.boolean().nullish(),
  defer_loading: z.boolean().nullish(),
  cache_control,
});

const named = z.object({ type: z.literal('tool_reference'), name: z.string() });
const defined = z.object({ type: z.literal('tool_definition'), definition: tool });

const addition = z.object({
  type: z.literal('tool_addition'),
  tool: z.discriminatedUnion('type', [named, defined], {
    error: unknownType('tool_reference or tool_definition'),
  }),
});

const removal = z.object({
  type: z.literal('tool_removal'),
  tool: z.discriminatedUnion('type', [named], { error: unknownType('tool_reference') }),
});

const systemBlock = z.discriminatedUnion('type', [text, addition, removal], {
  error: unknownType('text, tool_addition or tool_removal'),
});

const message = z.discriminatedUnion(
  'role',
  [
    z.object({
      role: z.literal('user'),
      content: blocks(
        z.discriminatedUnion('type', [text, image, result], {
          error: unknownType('text, image or tool_result'),
        }),
      ),
    }),
    z.object({
      role: z.literal('assistant'),
      content: blocks(
        z.discriminatedUnion('type', [text, call, thinking, redacted], {
          error: unknownType('text, tool_use or thinking'),
        }),
      ),
    }),
    z.object({
      role: z.literal('system'),
      content: z.preprocess(asBlocks, listOf(systemBlock).nullish()),
      output_config: z.object({ effort: claudeEffort.nullish() }).nullish(),
      clear_at: z.enum(['next_user_message', 'never']).nullish(),
    }),
  ],
  { error: ({ input }) => (isObject(input) ? 'must be user, assistant or system' : undefined) },
);

const display = z.unknown().optional();
const thinkingConfig = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('adaptive'), display }),
    z.object({ type: z.literal('enabled'), budget_tokens: z.int().positive(), display }),
    z.object({ type: z.literal('disabled') }),
    z.object({ type: z.literal('between_tools') }),
  ],
  { error: unknownType('adaptive, enabled, disabled or between_tools') },
);

const disable_parallel_tool_use = z.boolean().nullish();
const toolChoice = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('auto'), disable_parallel_tool_use }),
    z.object({ type: z.literal('any'), disable_parallel_tool_use }),
    z.object({ type: z.literal('tool'), name: z.string(), disable_parallel_tool_use }),
    z.object({ type: z.literal('none') }),
  ],
  { error: unknownType('auto, any, tool or none') },
);

const format = z.object({
  type: z.literal('json_schema', { error: 'must be json_schema' }),
  schema: object,
});

const { temperature, topP, topK, stop } = modelParametersSchema.shape;
const notSupported = { error: 'is not supported by this provider' };

const messagesBody = z.object({
  system: z.preprocess(
    asBlocks,
    listOf(z.discriminatedUnion('type', [text], { error: unknownType('text') })).nullish(),
  ),
  tools: listOf(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  mcp_servers: z.array(z.unknown()).max(0, notSupported).nullish(),
  safeguards: z.null(notSupported).optional(),
  messages: listOf(message),
  thinking: thinkingConfig.nullish(),
  output_config: z.object({ effort: claudeEffort.nullish(), format: format.nullish() }).nullish(),
  /** The older name of the format. */
  output_format: format.nullish(),
  temperature: temperature.nullable(),
  top_p: topP.nullable(),
  top_k: topK.nullable(),
  stop_sequences: z
    .array(stop.unwrap().element)
    .max(4, { error: 'must be at most 4 texts with this provider' })
    .nullish(),
  cache_control,
});

export type MessagesBody = z.output<typeof messagesBody>;
export type MessageBlock = MessagesBody['messages'][number];
export type ToolBody = z.output<typeof tool>;
export type ResultBlock = z.output<typeof result>;
export type CallBlock = z.output<typeof call>;
export type ImageBlock = z.output<typeof image>;
export type SystemMessage = Extract<MessageBlock, { role: 'system' }>;
/** A mark behind which Anthropic's servers cache. */
export type CacheControl = z.output<typeof cache_control>;

/** The body with its known fields alone. Throws `RefusedBody` for the first that is wrong. */
export function parseMessagesBody(body: unknown): MessagesBody {
  const { data, errors } = check(messagesBody, body);
  if (data) return data;
  const [first = { pointer: '', detail: 'has a value that is not allowed' }] = errors;
  throw new RefusedBody(first.pointer, first.detail);
}
