import type { EventSourceMessage } from 'eventsource-parser';
import OpenAI, { APIError } from 'openai';
import { z } from 'zod';
import { isObject, type JsonObject } from '../../shared/json.js';
import { endOf, modelName, tokenCount, tokenCounts } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { parseAnswer, toJsonText } from './exact-json.js';
import { HttpClient, type ResponseLimits } from './http-client.js';
import { toBody } from './openai-body.js';
import { reuseRequest } from './patches/sdk-requests.js';
import type { Provider, ProviderRequest } from './provider.js';
import { callProvider, type EndWord, type ReplyPart } from './provider-call.js';
import { jsonOf, readEvents } from './sdk-events.js';
import { createSdkFetch, sdkTimeoutMs, toFetchOptions } from './sdk-fetch.js';
import type { CallPiece } from './tape.js';

/** How to reach OpenAI, or anything that speaks its chat completions. */
export interface OpenAiSettings {
  apiKey: string;
  /** Includes the version, as the SDK has it: `https://api.openai.com/v1`. */
  baseUrl?: string | undefined;
}

/**
 * OpenAI's chat completions. System turns stay where they are, and any order of roles is accepted.
 * https://platform.openai.com/docs/api-reference/chat
 */
export function createOpenAiProvider(settings: OpenAiSettings, limits: ResponseLimits): Provider {
  const http = new HttpClient(limits);
  // Each null keeps a variable of the environment from being read in its place.
  const client = new OpenAI({
    apiKey: settings.apiKey,
    fetch: createSdkFetch(http),
    baseURL: settings.baseUrl ?? null,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    timeout: sdkTimeoutMs,
    logLevel: 'off',
  });
  reuseRequest(client);
  return {
    id: 'openai',
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) => (onDelta ? streamed : whole)(client, own);
      return callProvider({ request, parts, readError }, onDelta);
    },
    close: () => http.close(),
  };
}

async function* whole(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const fetchOptions = toFetchOptions(request);
  // The SDK's own parsing comes with timers and listeners for a body that is still on its way; here it is not.
  const response = await client.chat.completions.create(toBody(request), { fetchOptions }).asResponse();
  const answer = completion.parse(refuseError(parseAnswer(await response.text()), response.headers));
  const { message, finish_reason } = answer.choices[0] ?? nothingSaid;
  const rest = {
    reason: message.refusal ? 'blocked' : readEnd(finish_reason),
    isWhole: true,
    model: answer.model,
    usage: toUsage(answer.usage),
  } as const;
  yield* toParts(message, rest, (_call, place) => place);
}

/** A complete answer without choices. */
const nothingSaid = { message: { content: null, refusal: null }, finish_reason: 'stop' };

async function* streamed(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const body = { ...toBody(request), stream: true as const, stream_options: { include_usage: true } };
  const fetchOptions = toFetchOptions(request);
  const response = await client.chat.completions.create(body, { fetchOptions }).asResponse();
  const chunks = new Chunks();
  for await (const events of readEvents(response)) {
    for (const event of events) {
      if (event.data === '[DONE]') {
        yield chunks.end();
        return;
      }
      for (const part of chunks.read(parseEvent(event, response.headers))) yield part;
    }
  }
}

/** The chunks of a stream, and what is to be known of them at its end. */
class Chunks {
  readonly #keyOf = keysOfPieces();
  #isRefused = false;
  #isUnderstood = true;

  read({ choices, model, usage }: z.infer<typeof chunk>): ReplyPart[] {
    const choice = choices?.[0];
    this.#isRefused ||= Boolean(choice?.delta?.refusal);
    this.#isUnderstood &&= Boolean(choices ?? usage);
    const end = readEnd(choice?.finish_reason);
    const reason = end && this.#isRefused ? 'blocked' : end;
    return toParts(choice?.delta ?? {}, { reason, model, usage: toUsage(usage) }, this.#keyOf);
  }

  /** Whole even without a reason, unless a chunk had something else, which may be what went wrong. */
  end(): ReplyPart {
    return { isWhole: this.#isUnderstood, reason: this.#isRefused ? 'blocked' : undefined };
  }
}

function parseEvent(event: EventSourceMessage, headers: Headers): z.infer<typeof chunk> {
  const said = jsonOf(event);
  return chunk.parse(refuseError(event.event === 'error' ? { error: said } : said, headers));
}

/**
 * Throws the SDK's own error for one that comes behind a 200: as an event, or, from gateways such as OpenRouter, in
 * place of an answer or in its choice, with the status as its `code`. https://openrouter.ai/docs/api-reference/errors
 */
function refuseError(said: unknown, headers: Headers): unknown {
  const { error, choices }: JsonObject = isObject(said) ? said : {};
  const [choice] = [choices].flat();
  const found = error || (isObject(choice) && choice.error);
  if (!found) return said;
  const status = Number(errorIn(found).code);
  throw new APIError(status >= 400 && status < 600 ? status : undefined, found, undefined, headers);
}

type KeyOf = (call: z.infer<typeof toolCall>, place: number) => CallPiece['key'];

/**
 * The keys for a stream: its pieces name their call by its index. Some servers that speak this protocol give each call
 * the index 0; there a name with another id, or another name without an id, begins the next one, and an id goes back to
 * its call.
 */
function keysOfPieces(): KeyOf {
  const keys = new Set<string>();
  const current = new Map<number, string>();
  const names = new Map<number, string>();
  return ({ index, id, function: called }, place) => {
    const at = index ?? place;
    const { name } = called ?? {};
    const own = `${at} ${id || name}`;
    const begins = name && (id || (names.get(at) ?? name) !== name);
    if (begins || keys.has(own)) current.set(at, own);
    if (begins) keys.add(own);
    if (name) names.set(at, name);
    return current.get(at) ?? at;
  };
}

function toParts({ content, tool_calls }: z.infer<typeof said>, rest: ReplyPart, keyOf: KeyOf): ReplyPart[] {
  const [call, ...others] = (tool_calls ?? []).map((each, place) => toPiece(each, keyOf(each, place)));
  return [{ ...rest, text: content ?? undefined, call }, ...others.map((other) => ({ call: other }))];
}

const toPiece = ({ id, function: called }: z.infer<typeof toolCall>, key: CallPiece['key']): CallPiece => ({
  key,
  id: id ?? undefined,
  name: called?.name ?? undefined,
  arguments: toJsonText(called?.arguments),
});

/** In any case, since some servers write `STOP`. */
const readEnd = (word: string | null | undefined): EndWord | undefined =>
  endOf(finishReasons, word?.toLowerCase());

/**
 * The words of OpenAI, and of others that speak its protocol, by their clients or source: `eos` of Together,
 * `eos_token` and `stop_sequence` of TGI, `error` and `abort` of vLLM, and the last one of DeepSeek.
 */
const finishReasons: ReadonlyMap<string, EndWord> = new Map([
  ...['stop', 'tool_calls', 'function_call', 'eos', 'eos_token', 'end_turn', 'stop_sequence'].map(
    (word) => [word, 'stop'] as const,
  ),
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'blocked'],
  ...['error', 'abort', 'insufficient_system_resource'].map((word) => [word, 'broken'] as const),
]);

const usage = z
  .object({
    ...{ prompt_tokens: tokenCount, completion_tokens: tokenCount },
    prompt_tokens_details: tokenCounts({ cached_tokens: tokenCount, cache_write_tokens: tokenCount }),
    completion_tokens_details: tokenCounts({ reasoning_tokens: tokenCount }),
  })
  .nullish()
  .catch(undefined);
const text = z.string().nullish();
const toolCall = z.object({
  /** Of a piece in a stream; a whole answer has the calls in their order. */
  index: z.int().nullish(),
  id: text,
  function: z.object({ name: text, arguments: z.unknown().optional() }).nullish(),
});
const said = z.object({ content: text, refusal: text, tool_calls: z.array(toolCall).nullish() });

const completion = z.object({
  model: modelName,
  choices: z.array(z.object({ message: said, finish_reason: text })),
  usage,
});

/** Some servers send chunks without choices: token counts alone, or signs of life. */
const chunk = z.object({
  model: modelName,
  choices: z.array(z.object({ delta: said.nullish(), finish_reason: text }).nullish()).nullish(),
  usage,
});

function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  return (
    counts && {
      inputTokens: counts.prompt_tokens,
      outputTokens: counts.completion_tokens,
      cachedTokens: counts.prompt_tokens_details?.cached_tokens,
      cacheWriteTokens: counts.prompt_tokens_details?.cache_write_tokens,
      reasoningTokens: counts.completion_tokens_details?.reasoning_tokens,
    }
  );
}

function readError(error: unknown): ErrorFacts {
  if (!(error instanceof APIError)) return {};
  const { code, type, param, message: text = error.message, details } = errorIn(error.error);
  const header = (name: string) => error.headers?.get(name);
  return { status: error.status, words: [code, type], param, text, details, header };
}

/** The error itself, which servers that speak this protocol also send as a text alone, or in a list, as Gemini does. */
function errorIn(body: unknown): z.infer<typeof errorFields> {
  const [error] = [body].flat();
  const fields = isObject(error) && isObject(error.error) ? error.error : error;
  return errorFields.parse(typeof fields === 'string' ? { message: fields } : isObject(fields) ? fields : {});
}
const word = z.string().optional().catch(undefined);
const unread = z.unknown().optional();
const errorFields = z.object({ code: unread, type: unread, details: unread, param: word, message: word });
