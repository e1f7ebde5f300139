import { z } from 'zod';
import { modelParametersSchema } from '../../shared/protocol/model-parameters.js';
import { invalidRequest } from '../../shared/validation.js';

/** The body of `POST /v1/chat/completions`: the fields it reads, and harmless values of unsupported ones. */

const tools = 'is not supported: this server offers no tools';
const { temperature, topP, stop, seed, ...others } = modelParametersSchema.shape;

const stopSequence = stop.unwrap().element;
// In place of a positive number, which OpenAPI 3.0 spells otherwise than JSON Schema.
const tokenLimit = z.int().min(1);

/** Must be empty where it is an array. */
const none = (error: string) => z.array(z.unknown(), { error }).max(0, { error }).nullish();
/** Must be this value, the default. */
const only = <T extends string | number | boolean>(value: T, error: string) =>
  z.literal(value, { error }).nullish();
const absent = (error: string) => z.null({ error }).optional();
/** For OpenAI alone; never read. */
const unread = z.unknown().optional();

const partKinds: ReadonlySet<unknown> = new Set(['image_url', 'input_audio', 'file', 'refusal']);

const textPart = z.object({
  type: z.literal('text', {
    error: ({ input }) => (partKinds.has(input) ? `${input} parts are not supported` : 'must be text'),
  }),
  text: z.string(),
});

const message = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant'], {
    error: ({ input }) =>
      input === 'tool' || input === 'function' ? tools : 'must be system, developer, user or assistant',
  }),
  content: z.union([z.string(), z.array(textPart)], {
    error: ({ input }) =>
      input === undefined ? 'is required' : 'must be a string or an array of text parts',
  }),
  tool_calls: none(tools),
  function_call: absent(tools),
  audio: absent('is not supported'),
  // Fields of answers, which clients send back.
  refusal: unread,
  annotations: unread,
});

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
  service_tier: z.enum(['auto', 'default', 'flex'], { error: 'must be auto, default or flex' }).nullish(),
  n: only(1, 'must be 1: a completion has one choice here'),
  logprobs: only(false, 'must be false: log probabilities are not supported'),
  top_logprobs: only(0, 'must be 0: log probabilities are not supported'),
  logit_bias: z.strictObject({}, { error: 'must be empty: it is not supported' }).nullish(),
  modalities: z
    .array(z.unknown())
    // Checked before what it holds, so that thousands of them are one error.
    .max(1, { error: 'must be text alone' })
    .pipe(z.array(z.literal('text', { error: 'must be text alone' })))
    .meta({ items: { type: 'string', enum: ['text'] }, maxItems: 1 })
    .nullish(),
  audio: absent('is not supported'),
  prediction: absent('is not supported'),
  web_search_options: absent(tools),
  tools: none(tools),
  tool_choice: only('none', tools),
  parallel_tool_calls: only(true, tools),
  functions: none(tools),
  function_call: only('none', tools),
  response_format: z
    .object({ type: z.literal('text', { error: 'must be text: other formats are not supported' }) })
    .nullish(),
  store: only(false, 'must be false: nothing is stored for OpenAI'),
  user: unread,
  metadata: unread,
  safety_identifier: unread,
  prompt_cache_key: unread,
  verbosity: unread,
});

export type CompletionBody = z.output<typeof completionBody>;

const namesOf = ({ shape }: z.ZodObject): ReadonlySet<string> => new Set(Object.keys(shape));

/** The fields that are known, whether or not this server can do what they ask for. */
export const knownFields = {
  body: namesOf(completionBody),
  streamOptions: namesOf(streamOptions),
  message: namesOf(message),
  part: namesOf(textPart),
} as const;

/** Reads the parsed JSON; throws `invalid_request` with the first error. */
export function parseCompletionBody(body: unknown, maxMessages: number): CompletionBody {
  // Checked before the messages themselves, so that any number of them is one error.
  const messages =
    typeof body === 'object' && body !== null && 'messages' in body ? body.messages : undefined;
  if (Array.isArray(messages) && messages.length > maxMessages)
    throw invalid('/messages', `must have at most ${maxMessages} messages`);
  const { data, error } = completionBody.safeParse(body, { error: describeIssue });
  if (data) return data;
  const { path, message } = innermost(error.issues[0] as z.core.$ZodIssue);
  throw invalid(path.map((step) => `/${String(step)}`).join(''), message);
}

/** For a part of an array the error of that part, in place of that of the array. */
function innermost(issue: z.core.$ZodIssue): Pick<z.core.$ZodIssue, 'path' | 'message'> {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.map(([first]) => first).find((first) => first && first.path.length > 0);
  return inner ? { path: [...issue.path, ...inner.path], message: inner.message } : issue;
}

/** In our words: those of the library may quote the request. */
function describeIssue(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is required';
      return `must be ${typeNames.get(issue.expected) ?? 'of another type'}`;
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}${unitOf(issue)}`;
    case 'too_small':
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${unitOf(issue)}`;
    default:
      return 'is not one of the documented values';
  }
}

const unitOf = ({ origin }: { origin: string }): string => (origin === 'string' ? ' characters long' : '');

const typeNames: ReadonlyMap<string, string> = new Map([
  ['string', 'a string'],
  ['number', 'a number'],
  ['int', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'an array'],
  ['object', 'an object'],
]);

const invalid = (pointer: string, detail: string) => invalidRequest([{ pointer, detail }]);
