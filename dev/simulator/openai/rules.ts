import { isObject, isPositiveInteger, type JsonObject, unknownKeys } from '../json.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { checkFieldsOf } from '../shape.js';
import { emptyArray, invalidValue, missing, openAiError, unknownParameter, wrongType } from './errors.js';
import { checkOpenAiTogether } from './part-rules.js';
import { checkOpenAiMessage } from './parts.js';
import { bodyShape, openAiComplaints } from './shapes.js';

const knownParameters = new Set(
  `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
  modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
  prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
  stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`.split(
    /\s+/,
  ),
);
const knownMessageFields = new Set(
  'role content name tool_calls tool_call_id refusal audio function_call annotations'.split(' '),
);
const roles = new Set(['system', 'assistant', 'user', 'function', 'tool', 'developer']);
const partTypes = new Set(['text', 'image_url', 'input_audio', 'file', 'refusal']);

/** The error for the first rule of Chat Completions that a body violates, by the rules of newer models. */
export function checkOpenAiRequest(body: JsonObject): Refusal | undefined {
  return (
    checkParameters(body) ??
    checkStreaming(body) ??
    checkTokenLimit(body) ??
    checkSampling(body) ??
    checkStop(body.stop) ??
    checkFieldsOf(bodyShape, body, openAiComplaints) ??
    checkOpenAiTogether(body) ??
    checkMessages(body)
  );
}

function checkParameters(body: JsonObject): Refusal | undefined {
  const unknown = unknownKeys(body, knownParameters);
  if (unknown.length > 0) {
    const noun = unknown.length === 1 ? 'argument' : 'arguments';
    return openAiError(400, `Unrecognized request ${noun} supplied: ${unknown.join(', ')}`);
  }
  if (body.model === undefined) return openAiError(400, 'you must provide a model parameter');
  if (typeof body.model !== 'string') return wrongType('model', 'a string', body.model);
  return undefined;
}

function checkStreaming({ stream, stream_options: options }: JsonObject): Refusal | undefined {
  if (stream != null && typeof stream !== 'boolean') {
    return wrongType('stream', 'a boolean', stream);
  }
  if (options == null) return undefined;
  if (!isObject(options)) return wrongType('stream_options', 'an object', options);
  if (stream === true) return undefined;
  return openAiError(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
    param: 'stream_options',
  });
}

function checkTokenLimit({ max_tokens: old, max_completion_tokens: limit }: JsonObject): Refusal | undefined {
  if (old != null) {
    return openAiError(
      400,
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      { param: 'max_tokens', code: 'unsupported_parameter' },
    );
  }
  if (limit == null || isPositiveInteger(limit)) return undefined;
  if (!Number.isInteger(limit)) return wrongType('max_completion_tokens', 'an integer', limit);
  return openAiError(
    400,
    `Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but got ${limit} instead.`,
    { param: 'max_completion_tokens', code: 'integer_below_min_value' },
  );
}

const ranges = [
  ['temperature', 0, 2],
  ['top_p', 0, 1],
  ['frequency_penalty', -2, 2],
  ['presence_penalty', -2, 2],
] as const;
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

function checkSampling(body: JsonObject): Refusal | undefined {
  const { seed, reasoning_effort: effort } = body;
  const refusal = firstRefusal(ranges, ([param, min, max]) => checkRange(param, body[param], { min, max }));
  if (refusal !== undefined) return refusal;
  if (seed != null && !Number.isInteger(seed)) return wrongType('seed', 'an integer', seed);
  if (effort == null || efforts.includes(String(effort))) return undefined;
  return invalidValue('reasoning_effort', effort, efforts.join(', '));
}

function checkRange(
  param: string,
  value: unknown,
  { min, max }: { min: number; max: number },
): Refusal | undefined {
  if (value == null) return undefined;
  if (typeof value !== 'number') return wrongType(param, 'a decimal', value);
  if (value >= min && value <= max) return undefined;
  const [is, code, expected] =
    value < min
      ? ['below minimum', 'decimal_below_min_value', `>= ${min}`]
      : ['above maximum', 'decimal_above_max_value', `<= ${max}`];
  const message = `Invalid '${param}': decimal ${is} value. Expected a value ${expected}, but got ${value} instead.`;
  return openAiError(400, message, { param, code });
}

const maxStops = 4;

function checkStop(stop: unknown): Refusal | undefined {
  if (stop == null || (typeof stop === 'string' && stop !== '')) return undefined;
  if (!Array.isArray(stop)) return wrongType('stop', 'one of a string or array of strings', stop);
  if (stop.length > maxStops) {
    return openAiError(
      400,
      `Invalid 'stop': array too long. Expected an array with maximum length ${maxStops}, but got an array with length ${stop.length} instead.`,
      { param: 'stop', code: 'array_above_max_length' },
    );
  }
  const wrong = stop.findIndex((text) => typeof text !== 'string' || text === '');
  return wrong === -1
    ? undefined
    : wrongType(`stop[${wrong}]`, 'a string of at least one character', stop[wrong]);
}

function checkMessages({ messages }: JsonObject): Refusal | undefined {
  if (messages === undefined) return missing('messages');
  if (!Array.isArray(messages)) return wrongType('messages', 'an array of objects', messages);
  if (messages.length === 0) return emptyArray('messages');
  return (
    firstRefusal(messages, (message, index) => checkMessage(message, `messages[${index}]`)) ??
    firstRefusal(messages, checkOpenAiMessage)
  );
}

function checkMessage(message: unknown, at: string): Refusal | undefined {
  if (!isObject(message)) return wrongType(at, 'an object', message);
  const [unknown] = unknownKeys(message, knownMessageFields);
  if (unknown !== undefined) return unknownParameter(`${at}.${unknown}`);
  if (message.role === undefined) return missing(`${at}.role`);
  if (typeof message.role !== 'string' || !roles.has(message.role)) {
    const supported = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'";
    return invalidValue(`${at}.role`, message.role, supported);
  }
  return checkContent(message, `${at}.content`);
}

function checkContent({ role, content, tool_calls: toolCalls }: JsonObject, at: string): Refusal | undefined {
  if (typeof content === 'string') return undefined;
  if (content == null) {
    if (role === 'assistant' && toolCalls !== undefined) return undefined;
    return openAiError(400, "Invalid value for 'content': expected a string, got null.", { param: at });
  }
  if (!Array.isArray(content)) return wrongType(at, 'one of a string or array of objects', content);
  if (content.length === 0) return emptyArray(at);
  const wrong = content.findIndex((part) => !isContentPart(part));
  if (wrong === -1) return undefined;
  const param = `${at}[${wrong}]`;
  return openAiError(400, `Invalid content part at '${param}'.`, { param, code: 'invalid_value' });
}

function isContentPart(part: unknown): boolean {
  if (!isObject(part) || typeof part.type !== 'string' || !partTypes.has(part.type)) return false;
  return part.type !== 'text' || typeof part.text === 'string';
}
