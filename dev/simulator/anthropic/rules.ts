import {
  isBlank,
  isObject,
  isPositiveInteger,
  type JsonObject,
  repeatedRoleAt,
  unknownKeys,
} from '../json.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { checkFieldsOf, checkShape } from '../shape.js';
import { invalid } from './errors.js';
import { anthropicComplaints, blocksShape, bodyShape } from './shapes.js';

const knownParameters = new Set(
  `cache_control container diagnostics inference_geo max_tokens messages metadata model output_config service_tier speed
  stop_sequences stream system thinking tool_choice tools user_profile_id workspace_id`.split(/\s+/),
);
const retiredParameters = ['temperature', 'top_p', 'top_k'];

/**
 * The error for the first rule of Messages that a body violates, by the rules of newer models. One rule is stricter
 * than the provider: consecutive messages of one role are refused here, where the provider would merge them.
 */
export function checkAnthropicRequest(body: JsonObject): Refusal | undefined {
  return (
    checkParameters(body) ??
    checkTokenLimit(body) ??
    checkStop(body.stop_sequences) ??
    checkSystem(body.system) ??
    checkFieldsOf(bodyShape, body, anthropicComplaints) ??
    checkMessages(body.messages)
  );
}

function checkParameters(body: JsonObject): Refusal | undefined {
  const retired = retiredParameters.find((name) => name in body);
  if (retired !== undefined) return invalid(`\`${retired}\` is deprecated for this model.`);
  const [unknown] = unknownKeys(body, knownParameters);
  if (unknown !== undefined) return invalid(`${unknown}: Extra inputs are not permitted`);
  if (body.model === undefined) return invalid('model: Field required');
  if (typeof body.model !== 'string') return invalid('model: Input should be a valid string');
  if (body.stream !== undefined && typeof body.stream !== 'boolean') {
    return invalid('stream: Input should be a valid boolean');
  }
  return undefined;
}

function checkTokenLimit({ max_tokens: limit }: JsonObject): Refusal | undefined {
  if (isPositiveInteger(limit)) return undefined;
  if (limit === undefined) return invalid('max_tokens: Field required');
  if (!Number.isInteger(limit)) return invalid('max_tokens: Input should be a valid integer');
  return invalid('max_tokens: Input should be greater than or equal to 1');
}

function checkStop(sequences: unknown): Refusal | undefined {
  if (sequences === undefined) return undefined;
  if (!Array.isArray(sequences)) return invalid('stop_sequences: Input should be a valid list');
  const wrong = sequences.findIndex((text) => typeof text !== 'string');
  if (wrong !== -1) return invalid(`stop_sequences.${wrong}: Input should be a valid string`);
  return sequences.some(isBlank)
    ? invalid('stop_sequences: each stop sequence must contain non-whitespace')
    : undefined;
}

function checkSystem(system: unknown): Refusal | undefined {
  if (system === undefined) return undefined;
  if (Array.isArray(system)) return checkBlocks(system, 'system');
  if (typeof system !== 'string') return invalid('system: Input should be a valid list');
  return checkText(system, 'system');
}

function checkMessages(messages: unknown): Refusal | undefined {
  if (messages === undefined) return invalid('messages: Field required');
  if (!Array.isArray(messages)) return invalid('messages: Input should be a valid list');
  if (messages.length === 0) return invalid('messages: at least one message is required');
  return firstRefusal(messages, checkMessage) ?? checkOrder(messages);
}

function checkMessage(message: unknown, index: number): Refusal | undefined {
  const at = `messages.${index}`;
  if (!isObject(message))
    return invalid(`${at}: Input should be a valid dictionary or object to extract fields from`);
  const [unknown] = unknownKeys(message, new Set(['role', 'content']));
  if (unknown !== undefined) return invalid(`${at}.${unknown}: Extra inputs are not permitted`);
  if (message.role === 'system') {
    return invalid(
      'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
    );
  }
  if (message.role !== 'user' && message.role !== 'assistant') {
    return invalid(`${at}.role: Input should be 'user' or 'assistant'`);
  }
  return checkContent(message.content, at);
}

function checkContent(content: unknown, at: string): Refusal | undefined {
  if (content === undefined) return invalid(`${at}.content: Field required`);
  if (content === '' || (Array.isArray(content) && content.length === 0)) {
    return invalid(
      `${at}: all messages must have non-empty content except for the optional final assistant message`,
    );
  }
  if (typeof content === 'string') return checkText(content, 'messages');
  if (Array.isArray(content)) {
    const judged = { at: [at, 'content'], complaints: anthropicComplaints };
    return checkBlocks(content, 'messages') ?? checkShape(blocksShape, content, judged);
  }
  return invalid(`${at}.content: Input should be a valid list`);
}

function checkBlocks(blocks: unknown[], at: string): Refusal | undefined {
  return firstRefusal(blocks, (block) => {
    if (!isObject(block) || typeof block.type !== 'string')
      return invalid(`${at}: content blocks must be objects with a type`);
    return block.type === 'text' ? checkText(block.text, at) : undefined;
  });
}

function checkText(text: unknown, at: string): Refusal | undefined {
  if (typeof text !== 'string') return invalid(`${at}: text content blocks must have a text`);
  if (text === '') return invalid(`${at}: text content blocks must be non-empty`);
  return isBlank(text) ? invalid(`${at}: text content blocks must contain non-whitespace text`) : undefined;
}

function checkOrder(messages: { role: string }[]): Refusal | undefined {
  if (messages[0]?.role !== 'user') return invalid('messages: first message must use the "user" role');
  const repeated = messages[repeatedRoleAt(messages)];
  if (repeated !== undefined) {
    return invalid(
      `messages: roles must alternate between "user" and "assistant", but found multiple "${repeated.role}" roles in a row`,
    );
  }
  if (messages.at(-1)?.role === 'user') return undefined;
  return invalid(
    'This model does not support assistant message prefill. The conversation must end with a user message.',
  );
}
