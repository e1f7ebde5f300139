import { z } from 'zod';
import type { JsonObject } from '../../../shared/json/json.js';
import { typeName } from '../json.js';
import type { Refusal } from '../refusal.js';
import { bracketed, type Complaints, checkShape, json, type Path, text, unread } from '../shape.js';
import { invalid, openAiError } from './errors.js';
import { onlyWithTools } from './part-rules.js';

/**
 * The error for the first rule of Chat Completions that a body violates. The limit has either name, as for OpenAI's
 * models before o1: https://platform.openai.com/docs/api-reference/chat/create
 */
export function checkOpenAiRequest(body: JsonObject): Refusal | undefined {
  return checkShape(bodyShape, body, openAiComplaints) ?? checkTogether(body as OpenAiBody);
}

/** The error for what a body cannot ask together. */
function checkTogether(body: OpenAiBody): Refusal | undefined {
  const { tools, parallel_tool_calls: parallel, response_format: format, messages } = body;
  if (body.model === undefined) return openAiError(400, 'you must provide a model parameter');
  const unstreamed = checkOptions(body);
  if (unstreamed !== undefined) return unstreamed;
  const silent = messages.findIndex(
    (message) => message.role === 'assistant' && message.content == null && !message.tool_calls,
  );
  if (silent !== -1) return missing(`messages[${silent}].content`);
  if (parallel != null && tools === undefined) return onlyWithTools('parallel_tool_calls');
  if (format?.type !== 'json_object' || /json/i.test(JSON.stringify(messages))) return undefined;
  const use = "to use 'response_format' of type 'json_object'";
  return invalid(`'messages' must contain the word 'json' in some form, ${use}.`, 'messages');
}

/** The error for options of a stream where there is none. */
export function checkOptions(body: { stream?: unknown; stream_options?: unknown }): Refusal | undefined {
  if (body.stream_options == null || body.stream === true) return undefined;
  const why = "parameter is only allowed when 'stream' is enabled.";
  return invalid(`The 'stream_options' ${why}`, 'stream_options');
}

export const named = { name: text, description: text.optional(), strict: z.boolean().nullish() };
const tool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({ ...named, parameters: json.optional() }),
});
const choice = z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: text }) });
export const formats = [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
] as const;
const format = z.discriminatedUnion('type', [
  ...formats,
  z.strictObject({ type: z.literal('json_schema'), json_schema: z.strictObject({ ...named, schema: json }) }),
]);

const called = z.strictObject({ name: text, arguments: text });
const call = z.strictObject({ id: text, type: z.literal('function'), function: called });
const image = z.strictObject({
  url: text.regex(/^(https?:\/\/|data:)/),
  detail: z.enum(['auto', 'low', 'high']).optional(),
});
const textPart = z.strictObject({ type: z.literal('text'), text });
const imagePart = z.strictObject({ type: z.literal('image_url'), image_url: image });
const part = z.discriminatedUnion('type', [textPart, imagePart]);
const texts = z.union([text, z.array(textPart).min(1)]);

const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.enum(['system', 'developer']), content: texts, name: text.optional() }),
  z.strictObject({
    role: z.literal('user'),
    content: z.union([text, z.array(part).min(1)]),
    name: text.optional(),
  }),
  z.strictObject({
    role: z.literal('assistant'),
    content: texts.nullish(),
    tool_calls: z.array(call).min(1).optional(),
    // A field of other servers that speak this format; OpenAI has none.
    reasoning_content: text.nullish(),
    ...unread('name refusal audio function_call annotations'),
  }),
  z.strictObject({ role: z.literal('tool'), content: texts, tool_call_id: text }),
]);

const sequence = text.min(1);
const penalty = z.number().min(-2).max(2).nullish();

/** Fields that both wires have. */
export const common = {
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  prompt_cache_key: text.nullish(),
};
export const efforts = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullish();
export const verbosity = z.enum(['low', 'medium', 'high']).nullish();

/** A body of Chat Completions, as OpenAI's reference has it. */
const bodyShape = z.strictObject({
  model: text.optional(),
  ...common,
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  max_tokens: z.int().min(1).nullish(),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  seed: z.int().nullish(),
  reasoning_effort: efforts,
  verbosity,
  stop: z.union([sequence, z.array(sequence).max(4)]).nullish(),
  tools: z.array(tool).min(1).max(128).optional(),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), choice]).optional(),
  response_format: format.optional(),
  messages: z.array(message).min(1),
  ...unread(`audio function_call functions logit_bias logprobs metadata modalities moderation n prediction
    prompt_cache_options prompt_cache_retention safety_identifier service_tier store top_logprobs user
    web_search_options`),
});

export type OpenAiBody = z.output<typeof bodyShape>;
export type OpenAiMessage = z.output<typeof message>;

/** OpenAI's words for a body of the wrong shape. */
const openAiComplaints: Complaints = {
  unknown(path, keys) {
    if (path.length > 0) return unknownParameter(path, keys);
    const noun = keys.length === 1 ? 'argument' : 'arguments';
    return openAiError(400, `Unrecognized request ${noun} supplied: ${keys.join(', ')}`);
  },
  wrong(path, value, issue) {
    const param = bracketed(path);
    if (path.at(-1) === 'content' && value == null) {
      return invalid("Invalid value for 'content': expected a string, got null.", param);
    }
    if (value === undefined) return missing(param);
    switch (issue.code) {
      case 'invalid_value':
        return invalidValue(param, value, issue.values.join(', '));
      case 'invalid_type':
        return wrongType(param, typeNames[issue.expected] ?? 'an object', value);
      case 'too_small':
        if (value === '') return wrongType(param, 'a string of at least one character', value);
        return Array.isArray(value)
          ? wrongLength(param, value, Infinity)
          : outOfRange(param, value, `>= ${issue.minimum}`);
      case 'too_big':
        return Array.isArray(value)
          ? wrongLength(param, value, Number(issue.maximum))
          : outOfRange(param, value, `<= ${issue.maximum}`);
      default:
        if (typeof value === 'string') return invalidValue(param, value, 'those of the reference');
        return wrongType(
          param,
          `one of a string or array of ${param === 'stop' ? 'strings' : 'objects'}`,
          value,
        );
    }
  },
};

/** The same words at Responses, where each unknown field has its place. */
export const responsesComplaints: Complaints = { ...openAiComplaints, unknown: unknownParameter };

function unknownParameter(path: Path, [key = '']: readonly string[]): Refusal {
  const param = bracketed([...path, key]);
  return invalid(`Unknown parameter: '${param}'.`, param, 'unknown_parameter');
}

const typeNames: Record<string, string> = {
  string: 'a string',
  boolean: 'a boolean',
  array: 'an array of objects',
  number: 'a decimal',
  int: 'an integer',
};

const missing = (param: string): Refusal =>
  invalid(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter');

const invalidValue = (param: string, value: unknown, supported: string): Refusal =>
  invalid(`Invalid value: '${value}'. Supported values are: ${supported}.`, param, 'invalid_value');

function wrongType(param: string, expected: string, value: unknown): Refusal {
  const but = `but got ${typeName(value)} instead.`;
  return invalid(`Invalid type for '${param}': expected ${expected}, ${but}`, param, 'invalid_type');
}

/** The array has no items, or more than `max`. */
function wrongLength(param: string, { length }: readonly unknown[], max: number): Refusal {
  const [is, bound, code] =
    length === 0
      ? ['empty array', 'minimum length 1', 'empty_array']
      : ['array too long', `maximum length ${max}`, 'array_above_max_length'];
  const given = length === 0 ? 'an empty array' : `an array with length ${length}`;
  return invalid(
    `Invalid '${param}': ${is}. Expected an array with ${bound}, but got ${given} instead.`,
    param,
    code,
  );
}

/** The number is not within a bound, such as `>= 0`. */
function outOfRange(param: string, value: unknown, bound: string): Refusal {
  const kind = param.endsWith('tokens') ? 'integer' : 'decimal';
  const [is, side] = bound.startsWith('>') ? ['below minimum', 'below_min'] : ['above maximum', 'above_max'];
  const message = `Invalid '${param}': ${kind} ${is} value. Expected a value ${bound}, but got ${value} instead.`;
  return invalid(message, param, `${kind}_${side}_value`);
}
