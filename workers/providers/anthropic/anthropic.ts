import Anthropic, { APIError } from '@anthropic-ai/sdk';
import type { EventSourceMessage } from 'eventsource-parser';
import type { z } from 'zod';
import { givenFields } from '../../../shared/json/json.js';
import type { ErrorFacts } from '../errors/error-classification.js';
import type { HttpClient } from '../http/http-client.js';
import { reuseRequest } from '../http/patches/sdk-requests.js';
import {
  createSdkFetch,
  jsonOf,
  readEvents,
  sdkTimeoutMs,
  toFetchOptions,
  wholeBody,
} from '../http/sdk-fetch.js';
import type { Provider, ProviderRequest } from '../provider.js';
import { endReader, laterCounts } from '../reply/answer-fields.js';
import { parseAnswer, toJsonText } from '../reply/exact-json.js';
import { callProvider, type ReplyPart } from '../reply/provider-call.js';
import { type block, message, refusalOf, streamEvent, toUsage, type UsageCounts } from './answer.js';
import { type BodyOptions, type Thinking, toBody } from './anthropic-body.js';
import { createWrittenCall, isWritten } from './written-body.js';

/** How to reach Anthropic. */
interface AnthropicSettings extends BodyOptions {
  apiKey: string;
  /** Without the version, as the SDK has it: `https://api.anthropic.com`. */
  baseUrl?: string | undefined;
}

/**
 * Anthropic's Messages API. System texts have a field of their own, and newer models refuse a last turn by the
 * assistant. https://platform.claude.com/docs/en/api/messages
 */
export function createAnthropicProvider(settings: AnthropicSettings, http: HttpClient): Provider {
  const client = new Anthropic({
    // An explicit key is the client's only credential: the SDK then reads no other from the environment or disk.
    apiKey: settings.apiKey,
    fetch: createSdkFetch(http),
    // Null keeps the environment's address from being read in its place.
    baseURL: settings.baseUrl ?? null,
    webhookKey: null,
    maxRetries: 0,
    // Given, because the SDK refuses large token limits without streaming when left to its own timeout.
    timeout: sdkTimeoutMs,
    logLevel: 'off',
    // Off, because a variable of the environment could put prompts into its spans.
    openTelemetry: false,
  });
  const written = createWrittenCall(client, http);
  reuseRequest(client);
  return {
    id: 'anthropic',
    keepsSystem: !settings.isForeign,
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) =>
        isWritten(own)
          ? written(own)
          : ((own.isStreamed ?? onDelta) ? streamed : whole)(client, own, toBody(own, settings));
      return callProvider({ provider: 'anthropic', request, parts, readError }, onDelta);
    },
    close: () => http.close(),
  };
}

type Body = Anthropic.MessageCreateParamsNonStreaming;

/** `messages.create` without its warnings, which it prints on the console for models that are near their end. */
const post = (client: Anthropic, body: object, fetchOptions: object): Promise<Response> =>
  client.post('/v1/messages', { body, fetchOptions }).asResponse();

async function* whole(client: Anthropic, request: ProviderRequest, body: Body): AsyncGenerator<ReplyPart> {
  const response = await post(client, body, toFetchOptions(request));
  yield* readWhole(await response.text());
}

function* readWhole(body: string): Iterable<ReplyPart> {
  const answer = message.parse(parseAnswer(body));
  const { stop_reason, model, usage } = answer;
  const isBegun = answer.content.some(({ type, text }) => type === 'tool_use' || text);
  const refusal = isBegun ? undefined : refusalOf(answer);
  const counted = { usage: toUsage(usage), tier: usage?.service_tier };
  yield { reason: toEnd(stop_reason), refusal, isWhole: true, model, ...counted };
  for (const [index, block] of answer.content.entries())
    yield { ...toPart(index, block), opaque: toOpaque(toThinking(block)) };
}

async function* streamed(client: Anthropic, request: ProviderRequest, body: Body): AsyncGenerator<ReplyPart> {
  let counts: UsageCounts;
  const blocks = new Blocks();
  const response = await post(client, { ...body, stream: true }, toFetchOptions(request));
  for await (const events of readEvents(response)) {
    for (const raw of events) {
      if (raw.event === wholeBody) return yield* readWhole(raw.data);
      const event = parseEvent(raw, response.headers);
      const counted = event.usage ?? event.message?.usage;
      // Each event repeats only some of the counts.
      if (counted) counts = laterCounts(counts, counted);
      const told = counted && { usage: toUsage(counts), tier: counted.service_tier };
      yield { ...blocks.read(event), ...endIn(event), ...told };
    }
  }
}

const endIn = ({ type, delta, message }: z.infer<typeof streamEvent>): ReplyPart => ({
  // It comes behind all blocks: https://platform.claude.com/docs/en/build-with-claude/streaming#event-types
  reason: toEnd(delta?.stop_reason),
  refusal: delta ? refusalOf(delta) : undefined,
  isWhole: type === 'message_stop' || undefined,
  model: message?.model,
});

/** The blocks of a stream. A block of thinking is whole at its end. */
class Blocks {
  #thinking: Thinking | undefined;

  read({ type, index = 0, content_block: block, delta }: z.infer<typeof streamEvent>): ReplyPart {
    if (type === 'content_block_start' && block) {
      // Some relays do not say that one has ended.
      const opaque = this.#end();
      this.#thinking = toThinking(block);
      return { opaque, ...withPreset(toPart(index, block)) };
    }
    if (type === 'content_block_stop') return { opaque: this.#end(), call: { key: index, isEnded: true } };
    if (type !== 'content_block_delta' || !delta) return {};
    const { text, partial_json: json } = delta;
    if (delta.type === 'text_delta') return { text: text ?? undefined };
    if (delta.type === 'input_json_delta') return { call: { key: index, arguments: json ?? undefined } };
    if (this.#thinking?.type !== 'thinking') return {};
    this.#thinking.thinking += delta.thinking ?? '';
    this.#thinking.signature += delta.signature ?? '';
    return { thinking: delta.thinking ?? undefined, held: delta.signature?.length };
  }

  #end(): ReplyPart['opaque'] {
    const opaque = toOpaque(this.#thinking);
    this.#thinking = undefined;
    return opaque;
  }
}

/** The beginning of a block, or all of it. */
function toPart(key: number, { type, input, ...fields }: z.infer<typeof block>): ReplyPart {
  const { text, id, name, thinking = '' } = givenFields(fields);
  if (type === 'text') return { isNewText: true, text };
  if (type === 'thinking' || type === 'redacted_thinking') return { thinking };
  if (type !== 'tool_use') return {};
  return { call: { key, id, name, arguments: toJsonText(input) } };
}

function toThinking({ type, ...fields }: z.infer<typeof block>): Thinking | undefined {
  const { thinking = '', signature = '', data = '' } = givenFields(fields);
  if (type === 'thinking') return { type, thinking, signature };
  return type === 'redacted_thinking' ? { type, data } : undefined;
}

/** Thinking that was cut has no signature, without which it is not taken back. */
const toOpaque = (thinking: Thinking | undefined): ReplyPart['opaque'] =>
  thinking && (thinking.type !== 'thinking' || thinking.signature !== '')
    ? { data: JSON.stringify(thinking) }
    : undefined;

/** Arguments come in pieces behind the beginning of their call, which has them empty; some relays fill them there. */
function withPreset({ call, ...part }: ReplyPart): ReplyPart {
  if (!call) return part;
  const { arguments: json, ...begun } = call;
  return { call: { ...begun, preset: json === '{}' ? undefined : json } };
}

/** Throws the SDK's own error for an error that comes as an event. */
function parseEvent(event: EventSourceMessage, headers: Headers): z.infer<typeof streamEvent> {
  const json = jsonOf(event) as { error?: { type?: Anthropic.ErrorType } };
  if (event.event === 'error') throw new APIError(undefined, json, undefined, headers, json.error?.type);
  const read = streamEvent.parse(json);
  read.type ??= event.event;
  return read;
}

const toEnd = endReader({
  stop: ['end_turn', 'stop_sequence', 'tool_use'],
  length: ['max_tokens', 'model_context_window_exceeded'],
  blocked: ['refusal'],
  // It goes on when it is sent back, which happens with tools of Anthropic's own alone.
  broken: ['pause_turn'],
});

function readError(error: unknown): ErrorFacts {
  if (!(error instanceof APIError)) return {};
  // The SDK takes it from the body as it is.
  const message: unknown = error.apiMessage;
  return {
    status: error.status,
    words: [error.errorCode, error.type],
    header: (name) => error.headers?.get(name),
    // The SDK's own message is all of the body.
    text: typeof message === 'string' ? message : error.message,
  };
}
