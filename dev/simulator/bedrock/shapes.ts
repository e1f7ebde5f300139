import { z } from 'zod';
import { claudeEfforts } from '../claude.js';
import { type Complaints, dotted, flag, json, literal, maybeText, text } from '../shape.js';
import { constraint, extraneous, wrongType } from './errors.js';

const nothing = z.strictObject({}).optional();
const inputSchema = z.strictObject({ json });
const toolSpec = z.strictObject({ name: text, description: maybeText, inputSchema, strict: flag.optional() });
const toolChoice = z
  .strictObject({ auto: nothing, any: nothing, tool: z.strictObject({ name: text }).optional() })
  .refine((choice) => Object.keys(choice).length === 1);
const jsonSchema = z.strictObject({ schema: text, name: maybeText, description: maybeText });
const textFormat = z.strictObject({
  type: literal('json_schema'),
  structure: z.strictObject({ jsonSchema }),
});

/** The fields of a body for tools, formats and effort, as in Converse's reference. */
export const bodyShape = z.looseObject({
  toolConfig: z
    .strictObject({
      tools: z.array(z.strictObject({ toolSpec })).min(1),
      toolChoice: toolChoice.optional(),
    })
    .optional(),
  outputConfig: z
    .strictObject({ effort: z.enum(claudeEfforts).optional(), textFormat: textFormat.optional() })
    .optional(),
});

const image = z.strictObject({
  format: z.enum(['png', 'jpeg', 'gif', 'webp']),
  source: z.strictObject({ bytes: text }),
});
const reasoningText = z.strictObject({ text, signature: maybeText }).optional();
const resultPart = z.union([z.strictObject({ text: text.min(1) }), z.strictObject({ json })]);
const toolResult = z.strictObject({
  toolUseId: text,
  status: z.enum(['success', 'error']).optional(),
  content: z.array(resultPart).min(1),
});

/** The blocks of a message's content, of which each has one field. */
export const blocksShape = z.array(
  z
    .strictObject({
      text: maybeText,
      image: image.optional(),
      toolUse: z.strictObject({ toolUseId: text, name: text, input: json }).optional(),
      toolResult: toolResult.optional(),
      reasoningContent: z.strictObject({ reasoningText, redactedContent: maybeText }).optional(),
    })
    .refine((block) => Object.keys(block).length === 1),
);

export type BedrockBody = z.output<typeof bodyShape>;
export type BedrockBlock = z.output<typeof blocksShape>[number];

/** Converse's words for fields of the wrong shape. */
export const bedrockComplaints: Complaints = {
  unknown: (path) => extraneous(path.slice(0, -1), String(path.at(-1))),
  missing: (path) => constraint(`Value null at '${dotted(path)}'`, 'not be null'),
  wrong: (path, value, expected) =>
    typeof value === 'string'
      ? constraint(`Value '${value}' at '${dotted(path)}'`, `satisfy enum value set: [${expected}]`)
      : wrongType(dotted(path)),
};
