import { z } from 'zod';
import type { JsonObject } from '../../../shared/json/json.js';
import { claudeEfforts, thinkingConfig } from '../claude.js';
import { isBlank, repeatedRoleAt } from '../json.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { type Complaints, checkShape, dotted, type Issue, json, type Path, text, unread } from '../shape.js';
import { constraint, modelError, validationException, wrongType } from './errors.js';

/** The error for the first rule of Converse that a body violates. */
export function checkBedrockRequest(body: JsonObject): Refusal | undefined {
  return checkShape(bodyShape, body, bedrockComplaints) ?? checkTexts(body as BedrockBody);
}

function checkTexts({ system = [], messages = [] }: BedrockBody): Refusal | undefined {
  return (
    checkText(system, 'system', 'SystemContentBlock') ??
    firstRefusal(messages, ({ content = [] }, index) =>
      content.length === 0
        ? validationException(
            `The content field in the Message object at messages.${index} is empty. Add a ContentBlock object to the content field and try again.`,
          )
        : checkText(content, `messages.${index}.content`, 'ContentBlock'),
    ) ??
    checkOrder(messages)
  );
}

function checkText(blocks: { text?: string | undefined }[], at: string, kind: string): Refusal | undefined {
  const blank = blocks.findIndex(({ text }) => text !== undefined && isBlank(text));
  if (blank === -1) return undefined;
  return validationException(
    `The text field in the ${kind} object at ${at}.${blank} is blank. Add text to the text field, and try again.`,
  );
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
  return modelError(
    'This model does not support assistant message prefill. The conversation must end with a user message.',
  );
}

const hasOneField = (object: object) => Object.keys(object).length === 1;
const nothing = z.strictObject({}).optional();
const toolSpec = z.strictObject({
  name: text,
  description: text.optional(),
  inputSchema: z.strictObject({ json }),
  strict: z.boolean().optional(),
});
const ttl = z.enum(['5m', '1h']).optional();
/** All before it is cached: `CachePointBlock` of the SDK. */
const cachePoint = z.strictObject({ type: z.literal('default'), ttl }).optional();
const toolChoice = z
  .strictObject({ auto: nothing, any: nothing, tool: z.strictObject({ name: text }).optional() })
  .refine(hasOneField);
const tool = z.strictObject({ toolSpec: toolSpec.optional(), cachePoint }).refine(hasOneField);
const jsonSchema = z.strictObject({ schema: text, name: text.optional(), description: text.optional() });
const textFormat = z.strictObject({
  type: z.literal('json_schema'),
  structure: z.strictObject({ jsonSchema }),
});

const image = z.strictObject({
  format: z.enum(['png', 'jpeg', 'gif', 'webp']),
  source: z.strictObject({ bytes: text }),
});
const toolResult = z.strictObject({
  toolUseId: text,
  status: z.enum(['success', 'error']).optional(),
  content: z
    .array(z.strictObject({ text: text.min(1).optional(), json: json.optional() }).refine(hasOneField))
    .min(1),
});
const reasoningText = z.strictObject({ text, signature: text.optional() }).optional();
const block = z
  .strictObject({
    text: text.optional(),
    image: image.optional(),
    toolUse: z.strictObject({ toolUseId: text, name: text, input: json }).optional(),
    toolResult: toolResult.optional(),
    reasoningContent: z.strictObject({ reasoningText, redactedContent: text.optional() }).optional(),
    cachePoint,
  })
  .refine(hasOneField);

/** A body of Converse. One rule is stricter than the provider: AWS would ignore fields that Converse does not have. */
const bodyShape = z.strictObject({
  inferenceConfig: z
    .strictObject({
      maxTokens: z.int().min(1).optional(),
      temperature: z.number().min(0).max(1).optional(),
      topP: z.number().min(0).max(1).optional(),
      stopSequences: z.array(text.min(1)).optional(),
    })
    .optional(),
  system: z.array(z.strictObject({ text: text.optional(), cachePoint }).refine(hasOneField)).optional(),
  toolConfig: z
    .strictObject({
      tools: z.array(tool).min(1),
      toolChoice: toolChoice.optional(),
    })
    .optional(),
  outputConfig: z
    .strictObject({ effort: z.enum(claudeEfforts).optional(), textFormat: textFormat.optional() })
    .optional(),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(block).optional() }))
    .optional(),
  additionalModelRequestFields: z.looseObject({ thinking: thinkingConfig.optional() }).optional(),
  ...unread(`guardrailConfig promptVariables additionalModelResponseFieldPaths
    requestMetadata performanceConfig serviceTier`),
});

export type BedrockBody = z.output<typeof bodyShape>;
export type BedrockBlock = z.output<typeof block>;

/** Converse's words for a body of the wrong shape. */
const bedrockComplaints: Complaints = {
  unknown: (path, [key]) =>
    validationException(
      `Malformed input request: ${['#', ...path].map(String).join('/')}: extraneous key [${key}] is not permitted, please reformat your input and try again.`,
    ),
  wrong(path, value, issue) {
    const at = `'${dotted(path.flatMap((key): Path => (typeof key === 'number' ? [key + 1, 'member'] : [key])))}'`;
    if (value === undefined) return constraint(`Value null at ${at}`, 'not be null');
    const must = mustOf(issue);
    return must === undefined ? wrongType(dotted(path)) : constraint(`Value '${value}' at ${at}`, must);
  },
};

function mustOf(issue: Issue): string | undefined {
  if (issue.code === 'invalid_value') return `satisfy enum value set: [${issue.values.join(', ')}]`;
  if (issue.code === 'too_big') return `have value less than or equal to ${issue.maximum}`;
  if (issue.code !== 'too_small') return undefined;
  return `have ${issue.origin === 'number' ? 'value' : 'length'} greater than or equal to ${issue.minimum}`;
}
