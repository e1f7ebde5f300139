import { z } from 'zod';
import { claudeEfforts } from '../claude.js';
import { type Complaints, dotted, flag, json, literal, maybeText, text } from '../shape.js';
import { invalid } from './errors.js';

const cache = {
  cache_control: z.strictObject({ type: literal('ephemeral'), ttl: maybeText }).nullish(),
};
const parallel = { disable_parallel_tool_use: flag.optional() };
const tool = z.strictObject({
  ...{ type: literal('custom').nullish(), name: text, description: maybeText, input_schema: json },
  ...{ strict: flag.optional(), eager_input_streaming: flag.nullish(), ...cache },
});
const choice = z.discriminatedUnion('type', [
  z.strictObject({ type: literal('auto'), ...parallel }),
  z.strictObject({ type: literal('any'), ...parallel }),
  z.strictObject({ type: literal('tool'), name: text, ...parallel }),
  z.strictObject({ type: literal('none') }),
]);
const format = z.strictObject({ type: literal('json_schema'), schema: json });

/** The fields of a body for tools, formats and effort (https://docs.anthropic.com/en/api/messages). */
export const bodyShape = z.looseObject({
  tools: z.array(tool).optional(),
  tool_choice: choice.optional(),
  output_config: z
    .strictObject({ effort: z.enum(claudeEfforts).nullish(), format: format.nullish() })
    .optional(),
});

const said = z.strictObject({ type: literal('text'), text, citations: z.null().optional(), ...cache });
const source = z.discriminatedUnion('type', [
  z.strictObject({ type: literal('base64'), media_type: text, data: text }),
  z.strictObject({ type: literal('url'), url: text.regex(/^https?:/) }),
]);
const image = z.strictObject({ type: literal('image'), source, ...cache });
const result = z.strictObject({
  ...{ type: literal('tool_result'), tool_use_id: text, is_error: flag.optional(), ...cache },
  content: z.union([text, z.array(said)]).optional(),
});
const call = z.strictObject({ type: literal('tool_use'), id: text, name: text, input: json, ...cache });
const thinking = z.strictObject({ type: literal('thinking'), thinking: text, signature: text });
const redacted = z.strictObject({ type: literal('redacted_thinking'), data: text });

/** The blocks of a message's content. */
export const blocksShape = z.array(
  z.discriminatedUnion('type', [said, image, result, call, thinking, redacted]),
);

export type AnthropicBody = z.output<typeof bodyShape>;
export type AnthropicBlock = z.output<typeof blocksShape>[number];

/** Anthropic's words for fields of the wrong shape. */
export const anthropicComplaints: Complaints = {
  unknown: (path) => invalid(`${dotted(path)}: Extra inputs are not permitted`),
  missing: (path) => invalid(`${dotted(path)}: Field required`),
  wrong: (path, _value, expected) => invalid(`${dotted(path)}: Input should be ${expected}`),
};
