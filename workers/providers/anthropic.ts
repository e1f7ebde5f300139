import Anthropic, { APIError } from '@anthropic-ai/sdk';
import type { EventSourceMessage } from 'eventsource-parser';
import { z } from 'zod';
import { givenFields } from '../../shared/given-fields.js';
import { modelName, tokenCount } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { HttpClient, type ResponseLimits } from './http-client.js';
import { toAlternating } from './message-shaping.js';
import { reuseRequest } from './patches/sdk-requests.js';
import type { FinishReason, Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { readEvents } from './sdk-events.js';
import { createSdkFetch, sdkTimeoutMs, toFetchOptions } from './sdk-fetch.js';

/** How to reach Anthropic. */
export interface AnthropicSettings {
  apiKey: string;
  /** Without the version, as the SDK has it: `https://api.anthropic.com`. */
  baseUrl?: string | undefined;
}

/**
 * Anthropic's Messages API. System texts have a field of their own, and newer models refuse a last turn by the
 * assistant. https://platform.claude.com/docs/en/api/messages
 */
export function createAnthropicProvider(settings: AnthropicSettings, limits: ResponseLimits): Provider {
  const http = new HttpClient(limits);
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
  reuseRequest(client);
  return {
    id: 'anthropic',
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) => (onDelta ? streamed : whole)(client, own);
      return callProvider({ request, parts, readError }, onDelta);
    },
    close: () => http.close(),
  };
}

async function* whole(client: Anthropic, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const fetchOptions = toFetchOptions(request);
  const response = await client.messages.create(toBody(request), { fetchOptions }).asResponse();
  const answer = message.parse(await response.json());
  yield {
    text: answer.content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join(''),
    reason: finishReasons.get(answer.stop_reason),
    model: answer.model,
    usage: toUsage(answer.usage),
  };
}

async function* streamed(client: Anthropic, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  let stopReason = '';
  const body = { ...toBody(request), stream: true as const };
  // The SDK swallows the pings that show that the provider is still at work.
  const fetchOptions = toFetchOptions(request, request.onActivity);
  const response = await client.messages.create(body, { fetchOptions }).asResponse();
  for await (const events of readEvents(response)) {
    for (const raw of events) {
      const event = parseEvent(raw, response.headers);
      stopReason = event.delta?.stop_reason ?? stopReason;
      yield {
        text: event.delta?.type === 'text_delta' ? event.delta.text : undefined,
        // Not before the stream's own end: a stream cut off after the stop reason may have lost text.
        reason: event.type === 'message_stop' ? finishReasons.get(stopReason) : undefined,
        model: event.message?.model,
        usage: toUsage(event.usage ?? event.message?.usage),
      };
    }
  }
}

/** Throws the SDK's own error for an error that comes as an event. */
function parseEvent({ event, data }: EventSourceMessage, headers: Headers): z.infer<typeof streamEvent> {
  const said: { error?: { type?: Anthropic.ErrorType } } | null = JSON.parse(data);
  if (event === 'error')
    throw new APIError(undefined, said ?? undefined, undefined, headers, said?.error?.type);
  return streamEvent.parse(said);
}

function toBody({ turns, model, maxOutputTokens, parameters }: ProviderRequest) {
  const { system, turns: messages } = toAlternating(turns);
  const stop_sequences = parameters?.stop;
  return { model, max_tokens: maxOutputTokens, messages, ...givenFields({ system, stop_sequences }) };
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'blocked'],
]);

const usage = z.object({ input_tokens: tokenCount, output_tokens: tokenCount }).nullish().catch(undefined);

const message = z.object({
  model: modelName,
  content: z.array(z.object({ type: z.string(), text: z.string().optional() })),
  stop_reason: z.string(),
  usage,
});

const streamEvent = z.object({
  type: z.string(),
  message: z.object({ model: modelName, usage }).nullish(),
  delta: z
    .object({ type: z.string().optional(), text: z.string().optional(), stop_reason: z.string().nullish() })
    .nullish(),
  usage,
});

function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  return { inputTokens: counts?.input_tokens, outputTokens: counts?.output_tokens };
}

function readError(error: unknown): ErrorFacts {
  if (!(error instanceof APIError)) return {};
  return {
    status: error.status,
    words: [error.errorCode, error.type],
    header: (name) => error.headers?.get(name),
    text: error.message,
  };
}
