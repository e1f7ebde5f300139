import { isDeepStrictEqual } from 'node:util';
import type { EventSourceMessage } from 'eventsource-parser';
import { APIError, type OpenAI } from 'openai';
import { z } from 'zod';
import { givenFields, isObject, type JsonObject } from '../../../shared/json/json.js';
import { maxOpaqueLength } from '../../../shared/protocol/parts.js';
import { jsonOf, readEvents, toFetchOptions, wholeBody } from '../http/sdk-fetch.js';
import { type ProviderRequest, withPlainIds } from '../provider.js';
import { endReader, errorIn, modelName, openAiUsage, tierName } from '../reply/answer-fields.js';
import { parseAnswer, toJsonText } from '../reply/exact-json.js';
import type { ReplyPart } from '../reply/provider-call.js';
import type { CallPiece } from '../reply/tape.js';
import { toBody, toCacheKey } from './chat-completions-body.js';

/**
 * A chat completion, whole or as a stream, of OpenAI or of a server that speaks its protocol.
 * https://platform.openai.com/docs/api-reference/chat
 */
export const chatCompletions = (client: OpenAI, request: ProviderRequest, isStreamed: boolean) =>
  (isStreamed ? streamed : whole)(client, request);

const openAi = /^(.+\.)?api\.openai\.com$/;
const azure = /\.(openai|services\.ai|cognitiveservices)\.azure\.com$/;

/**
 * Whether OpenAI's models are at this address: at OpenAI, or at the path of Azure that has all of its API.
 * https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle
 */
export function isOpenAiHost(baseUrl: string): boolean {
  const { hostname, pathname } = new URL(baseUrl);
  return openAi.test(hostname) || (azure.test(hostname) && /^\/openai\/v1(\/|$)/.test(pathname));
}

/**
 * OpenAI keeps the completions of newer accounts: https://developers.openai.com/api/docs/guides/migrate-to-responses
 * Its newer models know the limit by its newer name alone, and other servers by the older one (docs/deploying.md).
 */
function bodyOf({ baseURL }: OpenAI, request: ProviderRequest) {
  const { omits, user } = request;
  const turns = omits?.has('callIds') ? withPlainIds(request.turns) : request.turns;
  const { max_completion_tokens: limit, ...body } = toBody({ ...request, turns });
  const { hostname } = new URL(baseURL);
  const isNewer = (openAi.test(hostname) || azure.test(hostname)) !== Boolean(omits?.has('limitName'));
  return {
    ...body,
    ...(limit !== undefined && { [isNewer ? 'max_completion_tokens' : 'max_tokens']: limit }),
    ...(isOpenAiHost(baseURL) && {
      store: false,
      ...givenFields({ safety_identifier: user, prompt_cache_key: toCacheKey(request) }),
    }),
  };
}

async function* whole(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const fetchOptions = toFetchOptions(request);
  // The SDK's own parsing comes with timers and listeners for a body that is still on its way; here it is not.
  const response = await client.chat.completions
    .create(bodyOf(client, request), { fetchOptions })
    .asResponse();
  yield* readWhole(await response.text(), request, response.headers);
}

function* readWhole(body: string, request: ProviderRequest, headers: Headers): Iterable<ReplyPart> {
  const answer = completion.parse(refuseError(parseAnswer(body), headers));
  const { message, finish_reason } = answer.choices[0] ?? emptyChoice;
  const rest = {
    reason: message.refusal ? 'blocked' : toEnd(finish_reason?.toLowerCase()),
    isWhole: true,
    model: answer.model,
    tier: answer.service_tier,
    usage: answer.usage,
  } as const;
  yield* toParts(message, { ...rest, ...new Thinking(request).take(message) }, (_call, place) => place);
}

/** A complete answer without choices. */
const emptyChoice = { message: { content: null, refusal: null }, finish_reason: 'stop' };

async function* streamed(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const body = { ...bodyOf(client, request), stream: true as const, ...streamOptionsOf(request) };
  const fetchOptions = toFetchOptions(request);
  const response = await client.chat.completions.create(body, { fetchOptions }).asResponse();
  const chunks = new Chunks(request);
  for await (const events of readEvents(response)) {
    for (const event of events) {
      if (event.event === wholeBody) return yield* readWhole(event.data, request, response.headers);
      if (event.data === '[DONE]') return yield chunks.end();
      yield* chunks.read(event, response.headers);
    }
  }
}

/** The chunks of a stream. */
class Chunks {
  readonly #keyOf = keysOfPieces();
  readonly #thinking: Thinking;
  #blocked: 'blocked' | undefined;
  #isUnderstood = true;
  #hasSaid = false;

  constructor(request: ProviderRequest) {
    this.#thinking = new Thinking(request);
  }

  read(event: EventSourceMessage, headers: Headers): ReplyPart[] {
    const { choices, model, service_tier: tier, usage } = parseEvent(event, headers);
    const choice = choices?.[0];
    // A message that stands whole behind its pieces says nothing more.
    const piece = choice?.delta ?? (this.#hasSaid ? undefined : choice?.message);
    this.#hasSaid ||= saysSomething(piece);
    if (piece?.refusal) this.#blocked = 'blocked';
    this.#isUnderstood &&= Boolean(choices ?? usage) || isEmpty(event);
    const end = toEnd(choice?.finish_reason?.toLowerCase());
    const rest = { ...this.#thinking.take(piece), reason: end && (this.#blocked ?? end), model, tier, usage };
    return toParts(piece, rest, this.#keyOf);
  }

  /** Whole even without a reason, unless a chunk had something else, which may be what went wrong. */
  end(): ReplyPart {
    return { isWhole: this.#isUnderstood, reason: this.#blocked };
  }
}

const streamOptionsOf = ({ omits }: ProviderRequest) =>
  omits?.has('streamOptions') ? {} : { stream_options: { include_usage: true } };

/** Whether it is a sign of life alone. */
const isEmpty = (event: EventSourceMessage): boolean => isDeepStrictEqual(jsonOf(event), {});

const saysSomething = (message: Message): boolean =>
  Boolean(readContent(message?.content).text || message?.tool_calls?.length);

function parseEvent(event: EventSourceMessage, headers: Headers): z.infer<typeof chunk> {
  const json = jsonOf(event);
  return chunk.parse(refuseError(event.event === 'error' ? { error: json } : json, headers));
}

/**
 * Throws the SDK's own error for one that comes behind a 200: as an event, or, from gateways such as OpenRouter, in
 * place of an answer or in its choice, with the status as its `code`. https://openrouter.ai/docs/api-reference/errors
 */
export function refuseError(answer: unknown, headers: Headers): unknown {
  const { error, choices }: JsonObject = isObject(answer) ? answer : {};
  const [choice] = [choices].flat();
  const found = error || (isObject(choice) && choice.error);
  if (!found) return answer;
  const status = Number(errorIn(found).code);
  throw new APIError(status >= 400 && status < 600 ? status : undefined, found, undefined, headers);
}

/**
 * The thinking of a reply, in the field that its server has for it: `reasoning` is vLLM's, the other llama.cpp's, LM
 * Studio's and DeepSeek's, which demands it back with calls. https://api-docs.deepseek.com/guides/thinking_mode
 */
class Thinking {
  #kept: Partial<Record<'reasoning' | 'reasoning_content', string>> = {};
  #length = 0;

  constructor(private readonly request: Pick<ProviderRequest, 'reasoning'>) {}

  /** The thinking in a message, or in a piece of one; before a text or a call with all that was gathered. */
  take(message: Message): Pick<ReplyPart, 'thinking' | 'opaque'> {
    const { reasoning_content, reasoning, content, tool_calls: calls } = message ?? {};
    const inField = reasoning_content || reasoning || undefined;
    const { text, thinking: inContent } = readContent(content);
    const thinking = inField || inContent || undefined;
    this.#length += inField?.length ?? 0;
    if (inField && this.request.reasoning && this.#length <= maxOpaqueLength) {
      const field = reasoning_content ? 'reasoning_content' : 'reasoning';
      this.#kept = { ...this.#kept, [field]: (this.#kept[field] ?? '') + inField };
    }
    const kept = this.#length <= maxOpaqueLength ? this.#kept : {};
    if (!(text || calls?.length) || Object.keys(kept).length === 0) return { thinking };
    this.#kept = {};
    return { thinking, opaque: { data: JSON.stringify(kept) } };
  }
}

type KeyOf = (call: z.infer<typeof toolCall>, place: number) => CallPiece['key'];

/**
 * The keys for a stream: its pieces name their call by its index. Some servers give each call the index 0; there a name
 * with another id, or another name without an id, begins the next one, and an id goes back to its call.
 */
function keysOfPieces(): KeyOf {
  const keys = new Set<string>();
  const current = new Map<number, string>();
  const names = new Map<number, string>();
  return ({ index, id, function: called }, place) => {
    const at = index ?? place;
    const { name } = called ?? {};
    const key = `${at} ${id || name}`;
    if (name && (id || name !== names.get(at))) keys.add(key);
    if (keys.has(key)) current.set(at, key);
    if (name) names.set(at, name);
    return current.get(at) ?? at;
  };
}

type Message = z.infer<typeof message> | null | undefined;

function toParts(message: Message, rest: ReplyPart, keyOf: KeyOf): ReplyPart[] {
  const { content, tool_calls } = message ?? {};
  const [call, ...others] = (tool_calls ?? []).map((each, place) => toPiece(each, keyOf(each, place)));
  const { text } = readContent(content);
  return [{ ...rest, text: text ?? undefined, call }, ...others.map((other) => ({ call: other }))];
}

const readContent = (content: NonNullable<Message>['content']) =>
  typeof content === 'object' && content !== null ? content : { text: content, thinking: undefined };

const toPiece = ({ id, function: called }: z.infer<typeof toolCall>, key: CallPiece['key']): CallPiece => ({
  key,
  id: id ?? undefined,
  name: called?.name ?? undefined,
  arguments: toJsonText(called?.arguments),
});

/**
 * The words of OpenAI, and of others that speak its protocol, by their clients or source: `eos` of Together,
 * `eos_token` and `stop_sequence` of TGI, `error` and `abort` of vLLM, and the last one of DeepSeek. They are compared
 * in lower case, since some servers write `STOP`.
 */
const toEnd = endReader({
  stop: ['stop', 'tool_calls', 'function_call', 'eos', 'eos_token', 'end_turn', 'stop_sequence'],
  length: ['length', 'max_tokens'],
  blocked: ['content_filter'],
  broken: ['error', 'abort', 'insufficient_system_resource'],
});

const usage = openAiUsage('prompt', 'completion');
const text = z.string().nullish();
const toolCall = z.object({
  /** The index of a piece in a stream; a whole answer has the calls in their order. */
  index: z.int().nullish(),
  id: text,
  function: z.object({ name: text, arguments: z.unknown().optional() }).nullish(),
});
const thought = text.catch(undefined);
/** The content of a model that thinks: https://docs.mistral.ai/capabilities/reasoning */
const contentParts = z
  .array(z.object({ text, thinking: z.array(z.object({ text })).optional() }))
  .transform((parts) => ({
    text: parts.map((part) => part.text ?? '').join(''),
    thinking: parts.flatMap(({ thinking = [] }) => thinking.map((thought) => thought.text ?? '')).join(''),
  }));
const message = z.object({
  content: z.union([text, contentParts]),
  refusal: text,
  reasoning_content: thought,
  reasoning: thought,
  tool_calls: z.array(toolCall).nullish(),
});

const completion = z.object({
  model: modelName,
  choices: z.array(z.object({ message, finish_reason: text })),
  service_tier: tierName,
  usage,
});

const choice = z.object({ delta: message.nullish(), message: message.nullish(), finish_reason: text });

/** Some servers send chunks without choices: token counts alone, or signs of life. */
const chunk = z.object({
  model: modelName,
  choices: z.array(choice.nullish()).nullish(),
  service_tier: tierName,
  usage,
});
