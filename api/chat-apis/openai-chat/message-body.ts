import { z } from 'zod';
import { toolSchema } from '../../../shared/models/model-parameters.js';
import { maxOpaqueLength } from '../../../shared/protocol/parts.js';
import { maxTools } from './tools-body.js';

/** The messages of `POST /v1/chat/completions`. */

/** A field that is never read. */
export const unread = z.unknown().optional();
/** A field that is not supported. */
export const absent = (error: string) => z.null({ error }).optional();

const unsupportedParts: ReadonlySet<unknown> = new Set(['input_audio', 'file', 'refusal']);

const textPart = z.object({ type: z.literal('text'), text: z.string() });
const imagePart = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) });

const part = z.discriminatedUnion('type', [textPart, imagePart], {
  error: ({ input }) => {
    if (typeof input !== 'object' || input === null) return undefined;
    const { type } = input as { type?: unknown };
    return unsupportedParts.has(type) ? `${type} parts are not supported` : 'must be text or image_url';
  },
});

/** All that a reply keeps, with as much again for the places of its texts. */
const blocks = z
  .string()
  .max(2 * maxOpaqueLength)
  .nullish();
const model = z.string().max(2048).nullish();
const signedThinking = z.object({ signed_thinking: blocks, model });

const toolCall = z.object({
  id: z.string().min(1),
  type: z.literal('function', {
    error: ({ input }) => (input === 'custom' ? 'custom tools are not supported' : 'must be function'),
  }),
  function: z.object({ name: toolSchema.shape.name, arguments: z.string() }),
  extra_content: z
    .object({
      google: z.object({ thought_signature: blocks, model }).nullish(),
      anthropic: signedThinking.nullish(),
      bedrock: signedThinking.nullish(),
      openai: z.object({ reasoning: blocks, model }).nullish(),
    })
    .nullish(),
});

/** A message; which of the fields belong to its role is checked as the conversation is read. */
export const message = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool'], {
    error: ({ input }) =>
      input === 'function'
        ? 'function is not supported: use tool'
        : 'must be system, developer, user, assistant or tool',
  }),
  content: z.union([z.string(), z.array(part)], { error: 'must be a string or an array of parts' }).nullish(),
  tool_calls: z.array(toolCall).max(maxTools).nullish(),
  tool_call_id: z.string().nullish(),
  function_call: absent('is not supported: use tool_calls'),
  audio: absent('is not supported'),
  // Fields of answers, which clients send back.
  refusal: unread,
  annotations: unread,
});

export type MessageBody = z.output<typeof message>;
export type PartBody = z.output<typeof part>;
export type ToolCallBody = z.output<typeof toolCall>;
