import { z } from 'zod';
import { modelParametersSchema, type ParameterName } from '../../../shared/models/model-parameters.js';
import { describeIssue, invalid } from '../../../shared/validation.js';
import { absent, message, unread } from './message-body.js';
import { maxTools, toolFields } from './tools-body.js';

/** The body of `POST /v1/chat/completions`: the fields it reads, and harmless values of unsupported ones. */

const { temperature, topP, stop, seed, ...others } = modelParametersSchema.shape;

const stopSequence = stop.unwrap().element;
// In place of a positive number, which OpenAPI 3.0 spells otherwise than JSON Schema.
const tokenLimit = z.int().min(1);

/** A field that must have this value, the default, if it is there. */
const only = <T extends string | number | boolean>(value: T, error: string) =>
  z.literal(value, { error }).nullish();

const asTools = 'is not supported: use tools';

const streamOptions = z.object({
  include_usage: z.boolean().nullish(),
  include_obfuscation: z.boolean().nullish(),
});

export const completionBody = z.object({
  model: z.string(),
  messages: z.array(message),
  stream: z.boolean().nullish(),
  stream_options: streamOptions.nullish(),
  max_completion_tokens: tokenLimit.nullish(),
  max_tokens: tokenLimit.nullish(),
  temperature: temperature.nullish(),
  top_p: topP.nullish(),
  stop: z
    .union([stopSequence, z.array(stopSequence).max(4)], {
      error: 'must be a text of 1 to 1000 characters, or up to 4 of them',
    })
    .nullish(),
  seed: seed.nullish(),
  frequency_penalty: others.frequencyPenalty.nullish(),
  presence_penalty: others.presencePenalty.nullish(),
  reasoning_effort: others.reasoningEffort.nullish(),
  verbosity: others.verbosity.nullish(),
  service_tier: z.string().nullish(),
  n: only(1, 'must be 1: a completion has one choice here'),
  logprobs: only(false, 'must be false: log probabilities are not supported'),
  top_logprobs: only(0, 'must be 0: log probabilities are not supported'),
  logit_bias: z.strictObject({}, { error: 'must be empty: it is not supported' }).nullish(),
  modalities: z
    .array(z.unknown())
    // Checked before what it holds, so that thousands of them are one error.
    .max(1, { error: 'must contain only text' })
    .pipe(z.array(z.literal('text', { error: 'must contain only text' })))
    .meta({ items: { type: 'string', enum: ['text'] }, maxItems: 1 })
    .nullish(),
  audio: absent('is not supported'),
  prediction: absent('is not supported'),
  web_search_options: absent('is not supported'),
  ...toolFields,
  functions: z.array(z.unknown(), { error: asTools }).max(0, { error: asTools }).nullish(),
  function_call: only('none', 'is not supported: use tool_choice'),
  store: z.boolean().nullish(),
  user: unread,
  metadata: unread,
  safety_identifier: unread,
  prompt_cache_key: unread,
});

export type CompletionBody = z.output<typeof completionBody>;

/** The fields that ask for something that no provider is asked for, and that no answer needs. */
export const unservedFields = ({ store, service_tier: tier }: CompletionBody): string[] => [
  ...(store ? ['store'] : []),
  ...(typeof tier === 'string' && !['auto', 'default', 'flex'].includes(tier) ? ['service_tier'] : []),
];

/** The field of each parameter for the model; `topK` and `thinking` come from other APIs alone. */
export const fieldNames = {
  maxOutputTokens: 'max_completion_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  stop: 'stop',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  reasoningEffort: 'reasoning_effort',
  verbosity: 'verbosity',
  tools: 'tools',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  format: 'response_format',
  cacheKey: 'prompt_cache_key',
  topK: 'top_k',
  thinking: 'thinking',
} as const satisfies Record<ParameterName, keyof CompletionBody | 'top_k' | 'thinking'>;

/** Reads the parsed JSON; throws `invalid_request` with the first error. */
export function parseCompletionBody(body: unknown, maxMessages: number): CompletionBody {
  const { messages, tools } = { ...(body as { messages?: unknown; tools?: unknown } | null) };
  refuseMany(messages, { pointer: '/messages', max: maxMessages, noun: 'messages' });
  refuseMany(tools, { pointer: '/tools', max: maxTools, noun: 'tools' });
  if (!Array.isArray(messages)) return parse(completionBody, body);
  // One by one, so that the errors of thousands cost no more than those of the first.
  const fields = parse(completionBody, { ...(body as object), messages: [] });
  return { ...fields, messages: messages.map((each, place) => parseMessage(each, place)) };
}

function parseMessage(given: unknown, place: number): CompletionBody['messages'][number] {
  const { tool_calls: calls } = { ...(given as { tool_calls?: unknown } | null) };
  refuseMany(calls, { pointer: `/messages/${place}/tool_calls`, max: maxTools, noun: 'calls' });
  return parse(message, given, `/messages/${place}`);
}

/** Refuses a list that is too long, before any of it is read. */
function refuseMany(
  list: unknown,
  { pointer, max, noun }: { pointer: string; max: number; noun: string },
): void {
  if (Array.isArray(list) && list.length > max) throw invalid(pointer, `must have at most ${max} ${noun}`);
}

function parse<T extends z.ZodType>(schema: T, given: unknown, at = ''): z.output<T> {
  const { data, error, success } = schema.safeParse(given, { error: describeIssue });
  if (success) return data;
  const { path, message } = innermost(error.issues[0] as z.core.$ZodIssue);
  throw invalid(at + path.map((step) => `/${String(step)}`).join(''), message);
}

/** For a part of an array the error of that part, in place of that of the array. */
function innermost(issue: z.core.$ZodIssue): Pick<z.core.$ZodIssue, 'path' | 'message'> {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.map(([first]) => first).find((first) => first && first.path.length > 0);
  return inner ? { path: [...issue.path, ...inner.path], message: inner.message } : issue;
}
