import { z } from 'zod';
import { bracketed, type Complaints, flag, json, literal, maybeText, text } from '../shape.js';
import { invalidValue, missing, unknownParameter, wrongType } from './errors.js';

const named = { name: text, description: maybeText, strict: flag.nullish() };
const tool = z.strictObject({
  type: literal('function'),
  function: z.strictObject({ ...named, parameters: json.optional() }),
});
const choice = z.strictObject({ type: literal('function'), function: z.strictObject({ name: text }) });
const format = z.discriminatedUnion('type', [
  z.strictObject({ type: literal('text') }),
  z.strictObject({ type: literal('json_object') }),
  z.strictObject({ type: literal('json_schema'), json_schema: z.strictObject({ ...named, schema: json }) }),
]);

/** The fields of a body for tools, formats and length, as OpenAI's reference has them. */
export const bodyShape = z.looseObject({
  tools: z.array(tool).min(1).max(128).optional(),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), choice]).optional(),
  parallel_tool_calls: flag.nullish(),
  response_format: format.optional(),
  verbosity: z.enum(['low', 'medium', 'high']).nullish(),
});

const called = z.strictObject({ name: text, arguments: text });
const call = z.strictObject({ id: text, type: literal('function'), function: called });
const image = z.strictObject({
  url: text.regex(/^(https?:\/\/|data:)/),
  detail: z.enum(['auto', 'low', 'high']).optional(),
});
const textPart = z.strictObject({ type: literal('text'), text });
const imagePart = z.strictObject({ type: literal('image_url'), image_url: image });

/** The parts of a content: of a user's message, and of another one. */
export const userParts = z.array(z.discriminatedUnion('type', [textPart, imagePart]));
export const textParts = z.array(textPart);

/** A message by its role, its content aside. */
export const messageShape = z.discriminatedUnion('role', [
  z.strictObject({ role: literal('tool'), content: z.unknown(), tool_call_id: text }),
  z.looseObject({
    role: literal('assistant'),
    tool_calls: z.array(call).min(1).optional(),
    tool_call_id: z.never().optional(),
  }),
  z.looseObject({
    role: z.enum(['system', 'developer', 'user', 'function']),
    tool_calls: z.never().optional(),
  }),
]);

export type OpenAiBody = z.output<typeof bodyShape>;
export type OpenAiPart = z.output<typeof userParts>[number];
export interface OpenAiMessage {
  role: string;
  content?: string | null | OpenAiPart[];
  tool_calls?: z.output<typeof call>[];
  tool_call_id?: string;
}

/** OpenAI's words for fields of the wrong shape. */
export const openAiComplaints: Complaints = {
  unknown: (path) => unknownParameter(bracketed(path)),
  missing: (path) => missing(bracketed(path)),
  wrong: (path, value, expected) =>
    typeof value === 'string'
      ? invalidValue(bracketed(path), value, expected)
      : wrongType(bracketed(path), expected, value),
};
