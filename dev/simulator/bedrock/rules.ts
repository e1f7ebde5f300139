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
import { constraint, extraneous, validationException, wrongType } from './errors.js';
import { bedrockComplaints, blocksShape, bodyShape } from './shapes.js';

const knownFields = new Set(
  `messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
  additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig`.split(/\s+/),
);

/**
 * The error for the first rule of Converse that a body violates. One rule is stricter than the provider: a field that
 * Converse does not have is refused here, where AWS would ignore it.
 */
export function checkBedrockRequest(body: JsonObject): Refusal | undefined {
  return (
    checkKeys(body, knownFields) ??
    checkInference(body.inferenceConfig) ??
    checkSystem(body.system) ??
    checkFieldsOf(bodyShape, body, bedrockComplaints) ??
    checkMessages(body.messages)
  );
}

function checkKeys(
  object: JsonObject,
  known: ReadonlySet<string>,
  ...path: readonly string[]
): Refusal | undefined {
  const [unknown] = unknownKeys(object, known);
  return unknown === undefined ? undefined : extraneous(path, unknown);
}

const inferenceFields = new Set(['maxTokens', 'temperature', 'topP', 'stopSequences']);

function checkInference(config: unknown): Refusal | undefined {
  if (config === undefined) return undefined;
  if (!isObject(config)) return wrongType('inferenceConfig');
  return (
    checkKeys(config, inferenceFields, 'inferenceConfig') ??
    checkTokenLimit(config.maxTokens) ??
    checkShare('temperature', config.temperature) ??
    checkShare('topP', config.topP) ??
    checkStop(config.stopSequences)
  );
}

/** Temperature and top-p go from 0 to 1. */
function checkShare(name: string, value: unknown): Refusal | undefined {
  const at = `inferenceConfig.${name}`;
  if (value === undefined) return undefined;
  if (typeof value !== 'number') return wrongType(at);
  if (value >= 0 && value <= 1) return undefined;
  const must = value < 0 ? 'greater than or equal to 0' : 'less than or equal to 1';
  return constraint(`Value '${value}' at '${at}'`, `have value ${must}`);
}

function checkStop(sequences: unknown): Refusal | undefined {
  const at = 'inferenceConfig.stopSequences';
  if (sequences === undefined) return undefined;
  if (!Array.isArray(sequences) || sequences.some((text) => typeof text !== 'string')) return wrongType(at);
  return sequences.includes('')
    ? constraint(`Value at '${at}'`, 'have length greater than or equal to 1')
    : undefined;
}

function checkTokenLimit(maxTokens: unknown): Refusal | undefined {
  if (maxTokens === undefined || isPositiveInteger(maxTokens)) return undefined;
  if (!Number.isInteger(maxTokens)) return wrongType('inferenceConfig.maxTokens');
  return constraint(
    `Value '${maxTokens}' at 'inferenceConfig.maxTokens'`,
    'have value greater than or equal to 1',
  );
}

function checkSystem(system: unknown): Refusal | undefined {
  if (system === undefined) return undefined;
  if (!Array.isArray(system)) return wrongType('system');
  return checkTexts(system, 'system', 'SystemContentBlock');
}

function checkMessages(messages: unknown): Refusal | undefined {
  if (messages !== undefined && !Array.isArray(messages)) return wrongType('messages');
  const list: unknown[] = messages ?? [];
  return firstRefusal(list, checkMessage) ?? checkOrder(list as { role: string }[]);
}

function checkMessage(message: unknown, index: number): Refusal | undefined {
  const at = `messages.${index}`;
  if (!isObject(message)) return wrongType(at);
  const { role, content } = message;
  if (role !== 'user' && role !== 'assistant') {
    return constraint(
      `Value '${role}' at 'messages.${index + 1}.member.role'`,
      'satisfy enum value set: [user, assistant]',
    );
  }
  if (content !== undefined && !Array.isArray(content)) return wrongType(`${at}.content`);
  if (content === undefined || content.length === 0) {
    return validationException(
      `The content field in the Message object at ${at} is empty. Add a ContentBlock object to the content field and try again.`,
    );
  }
  const judged = { at: ['messages', index, 'content'], complaints: bedrockComplaints };
  return checkTexts(content, `${at}.content`, 'ContentBlock') ?? checkShape(blocksShape, content, judged);
}

function checkTexts(blocks: unknown[], at: string, kind: string): Refusal | undefined {
  return firstRefusal(blocks, (block, index) => {
    if (!isObject(block)) return wrongType(`${at}.${index}`);
    const { text = 'none' } = block;
    if (typeof text !== 'string') return wrongType(`${at}.${index}.text`);
    if (!isBlank(text)) return undefined;
    return validationException(
      `The text field in the ${kind} object at ${at}.${index} is blank. Add text to the text field, and try again.`,
    );
  });
}

function checkOrder(messages: { role: string }[]): Refusal | undefined {
  if (messages[0]?.role !== 'user') {
    return validationException(
      'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
    );
  }
  if (repeatedRoleAt(messages) !== -1) {
    return validationException(
      'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.',
    );
  }
  if (messages.at(-1)?.role === 'user') return undefined;
  return validationException(
    'The model returned the following errors: This model does not support assistant message prefill. The conversation must end with a user message.',
  );
}
