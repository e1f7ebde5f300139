import { z } from 'zod';
import { cacheTtl } from '../conversation.js';

/** The longest text to stop at: a longer one is of no use. */
const maxStopLength = 1000;

const stopSequence = z
  .string()
  .min(1)
  .max(maxStopLength)
  .refine((text) => text.isWellFormed(), 'is not well-formed Unicode');

/** A JSON Schema. What it holds was checked at the API (`checkSchemas`): its size, its depth and its references. */
const jsonSchema = z.record(z.string(), z.unknown());

export type JsonSchema = z.output<typeof jsonSchema>;

/** A name that all providers take, of a tool or a schema. */
const toolName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, { error: 'must be 1 to 64 letters, digits, underscores and hyphens' });

export const toolSchema = z.object({
  name: toolName,
  description: z.string().optional(),
  /** The schema of its arguments, which are an object; absent means that it has none. */
  parameters: jsonSchema.optional(),
  /** Whether the arguments have to fit the schema. */
  strict: z.boolean().optional(),
  cache: cacheTtl.optional(),
});

/** A tool of the caller's that the model may call. */
export type Tool = z.output<typeof toolSchema>;

const toolChoiceSchema = z.union([z.enum(['auto', 'none', 'required']), z.object({ name: toolName })]);

export type ToolChoice = z.output<typeof toolChoiceSchema>;

const formatSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: toolName,
    description: z.string().optional(),
    schema: jsonSchema,
    strict: z.boolean().optional(),
  }),
]);

/** The JSON that the text of a reply has to be. */
export type ReplyFormat = z.output<typeof formatSchema>;

/** The form of the reply; absent fields are the provider's own defaults. Ranges as in OpenAI's chat completions. */
export const modelParametersSchema = z.object({
  /** Upper bound of the reply, in the provider's tokens; never above the pool's own. */
  maxOutputTokens: z.int().positive().optional(),
  temperature: z.number().min(0).max(2).optional(),
  topP: z.number().min(0).max(1).optional(),
  /** How many of the likeliest tokens each one is taken from. */
  topK: z.int().nonnegative().optional(),
  /** The reply ends before the first of these texts. */
  stop: z.array(stopSequence).min(1).max(4).optional(),
  seed: z.int().optional(),
  frequencyPenalty: z.number().min(-2).max(2).optional(),
  presencePenalty: z.number().min(-2).max(2).optional(),
  reasoningEffort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
  /** How Claude thinks: as much as it finds right, or with a budget of tokens. */
  thinking: z.union([z.literal('adaptive'), z.int().positive()]).optional(),
  verbosity: z.enum(['low', 'medium', 'high']).optional(),
  tools: z.array(toolSchema).min(1).max(128).optional(),
  toolChoice: toolChoiceSchema.optional(),
  /** False: at most one call in a reply. */
  parallelToolCalls: z.boolean().optional(),
  format: formatSchema.optional(),
  /** Equal for requests that begin alike: OpenAI finds what it has cached by it. */
  cacheKey: z.string().min(1).max(512).optional(),
});

export type ModelParameters = z.output<typeof modelParametersSchema>;

export type ParameterName = keyof ModelParameters;

/** Claude's words for effort. https://platform.claude.com/docs/en/build-with-claude/effort */
export const claudeEffort = z.enum(['low', 'medium', 'high', 'xhigh', 'max']);

/** The values that change nothing, at any provider. */
export const neutralValues: ModelParameters = {
  temperature: 1,
  topP: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  parallelToolCalls: true,
};

/** Hints: a provider that does not support one of these is asked without it. */
export const hints: ReadonlySet<ParameterName> = new Set<ParameterName>([
  'temperature',
  'topP',
  'topK',
  'seed',
  'frequencyPenalty',
  'presencePenalty',
  'reasoningEffort',
  'thinking',
  'verbosity',
  'parallelToolCalls',
]);
