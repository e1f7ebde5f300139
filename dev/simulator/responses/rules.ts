import { z } from 'zod';
import type { JsonObject } from '../../../shared/json/json.js';
import { invalid, openAiError } from '../openai/errors.js';
import {
  checkOptions,
  common,
  efforts,
  formats,
  named,
  responsesComplaints,
  verbosity,
} from '../openai/rules.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { checkShape, json, text, unread } from '../shape.js';
import { seal } from './items.js';

/**
 * The error for the first rule of Responses that a body violates (`ResponseCreateParamsBase` of OpenAI's SDK). Two are
 * stricter than the provider: no item may have an id, and an image needs its `detail`, as in the types.
 */
export function checkResponsesRequest(body: JsonObject): Refusal | undefined {
  return checkShape(bodyShape, body, responsesComplaints) ?? checkTogether(body as ResponsesBody);
}

/** The error for what a body cannot ask together. */
function checkTogether(body: ResponsesBody): Refusal | undefined {
  const { input, model, text: asked } = body;
  const items = typeof input === 'string' ? [] : input;
  const refusal =
    checkOptions(body) ?? firstRefusal(items, (item) => checkStored(item) ?? checkSeal(item, model));
  if (refusal !== undefined) return refusal;
  if (asked?.format?.type !== 'json_object' || /json/i.test(JSON.stringify(input))) return undefined;
  const use = "to use 'text.format' of type 'json_object'";
  return invalid(`Response input messages must contain the word 'json' in some form ${use}.`, 'input');
}

/** An item with an id stands for one that the provider has kept; here it keeps none (vercel/ai#7543, oh-my-pi#41). */
function checkStored({ id }: ResponsesItem): Refusal | undefined {
  if (id == null) return undefined;
  const why = 'Items are not persisted when `store` is set to false.';
  const how = 'Try again with `store` set to true, or remove this item from your input.';
  return openAiError(404, `Item with id '${id}' not found. ${why} ${how}`, { param: 'input' });
}

/** Reasoning comes back as it was given, to the model that gave it (openai/codex#8145, Wei-Shaw/sub2api#2863). */
function checkSeal(item: ResponsesItem, model: string): Refusal | undefined {
  if (item.type !== 'reasoning') return undefined;
  const sent = item.encrypted_content ?? '';
  if (sent === seal(model, item.summary)) return undefined;
  const shown = `${sent.slice(0, 4)}...${sent.slice(-4)}`;
  const why = 'could not be verified. Reason: Encrypted content could not be decrypted or parsed.';
  return openAiError(400, `The encrypted content ${shown} ${why}`, { code: 'invalid_encrypted_content' });
}

const kept = { id: text.nullish(), status: z.enum(['in_progress', 'completed', 'incomplete']).optional() };
const contentOf = <Part extends z.ZodType>(part: Part) => z.union([text, z.array(part).min(1)]);
const image = z.strictObject({
  type: z.literal('input_image'),
  detail: z.enum(['low', 'high', 'auto', 'original']),
  image_url: text.regex(/^(https?:\/\/|data:)/),
});
const inputText = z.strictObject({ type: z.literal('input_text'), text });
const inputPart = z.discriminatedUnion('type', [inputText, image]);
const outputPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('output_text'), text, ...unread('annotations logprobs') }),
  z.strictObject({ type: z.literal('refusal'), refusal: text }),
]);

const message = { type: z.literal('message').optional(), ...kept };
const phase = z.enum(['commentary', 'final_answer']).nullish();
const summary = z.array(z.strictObject({ type: z.literal('summary_text'), text }));
const item = z.discriminatedUnion('type', [
  z.discriminatedUnion('role', [
    z.strictObject({ ...message, role: z.enum(['system', 'developer']), content: contentOf(inputText) }),
    z.strictObject({ ...message, role: z.literal('user'), content: contentOf(inputPart) }),
    z.strictObject({ ...message, role: z.literal('assistant'), content: contentOf(outputPart), phase }),
  ]),
  z.strictObject({ type: z.literal('function_call'), call_id: text, name: text, arguments: text, ...kept }),
  z.strictObject({
    type: z.literal('function_call_output'),
    call_id: text,
    output: contentOf(inputPart),
    ...kept,
  }),
  z.strictObject({ type: z.literal('reasoning'), summary, encrypted_content: text.nullish(), ...kept }),
]);

const tool = z.strictObject({ type: z.literal('function'), ...named, parameters: json.nullable() });
const choice = z.strictObject({ type: z.literal('function'), name: text });
const format = z.discriminatedUnion('type', [
  ...formats,
  z.strictObject({ type: z.literal('json_schema'), ...named, schema: json }),
]);
const summaries = z.enum(['auto', 'concise', 'detailed']).nullish();

/** Not in it are stops, a seed, penalties and biases: Responses has none. */
const bodyShape = z.strictObject({
  model: text,
  input: contentOf(item),
  instructions: text.nullish(),
  ...common,
  stream_options: z.strictObject({ include_obfuscation: z.boolean().optional() }).nullish(),
  store: z.boolean().nullish(),
  include: z.array(z.enum(['reasoning.encrypted_content', 'message.output_text.logprobs'])).nullish(),
  // The least is 16: https://github.com/earendil-works/pi/issues/6265
  max_output_tokens: z.int().min(16).nullish(),
  reasoning: z.strictObject({ effort: efforts, summary: summaries, ...unread('context mode') }).nullish(),
  text: z.strictObject({ format: format.optional(), verbosity }).optional(),
  tools: z.array(tool).max(128).optional(),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), choice]).optional(),
  ...unread(`access_programs background context_management conversation image max_tool_calls metadata moderation
    previous_response_id prompt prompt_cache_options prompt_cache_retention safety_identifier
    service_tier top_logprobs truncation user`),
});

export type ResponsesBody = z.output<typeof bodyShape>;
export type ResponsesItem = z.output<typeof item>;
