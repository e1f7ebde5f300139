import type { EventSourceMessage } from 'eventsource-parser';
import OpenAI, { APIError } from 'openai';
import { z } from 'zod';
import { givenFields } from '../../shared/given-fields.js';
import { modelName, tokenCount } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { HttpClient, type ResponseLimits } from './http-client.js';
import { speakSystemOnly } from './message-shaping.js';
import { reuseRequest } from './patches/sdk-requests.js';
import type { FinishReason, Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { readEvents } from './sdk-events.js';
import { createSdkFetch, sdkTimeoutMs, toFetchOptions } from './sdk-fetch.js';

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
  const answer = completion.parse(await response.json());
  const { message, finish_reason } = answer.choices[0] ?? nothingSaid;
  yield {
    text: message.content ?? undefined,
    reason: message.refusal ? 'blocked' : finishReasons.get(finish_reason),
    model: answer.model,
    usage: toUsage(answer.usage),
  };
}

/** A complete answer without choices. */
const nothingSaid = { message: { content: null, refusal: null }, finish_reason: 'stop' };

async function* streamed(client: OpenAI, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const body = { ...toBody(request), stream: true as const, stream_options: { include_usage: true } };
  const fetchOptions = toFetchOptions(request);
  const response = await client.chat.completions.create(body, { fetchOptions }).asResponse();
  let refused = false;
  for await (const events of readEvents(response)) {
    for (const event of events) {
      if (event.data === '[DONE]') return;
      const { choices, model, usage } = parseEvent(event, response.headers);
      const choice = choices[0];
      refused ||= Boolean(choice?.delta?.refusal);
      const finished = finishReasons.get(choice?.finish_reason ?? '');
      yield {
        text: choice?.delta?.content ?? undefined,
        reason: finished && refused ? 'blocked' : finished,
        model,
        usage: toUsage(usage),
      };
    }
  }
}

/** Throws the SDK's own error for an error that comes as an event. */
function parseEvent({ event, data }: EventSourceMessage, headers: Headers): z.infer<typeof chunk> {
  const said: { error?: object } | null = JSON.parse(data);
  const error = said?.error ?? (event === 'error' ? said : undefined);
  if (error) throw new APIError(undefined, error, undefined, headers);
  return chunk.parse(said);
}

function toBody({ turns, model, maxOutputTokens, parameters = {} }: ProviderRequest) {
  const { topP, frequencyPenalty, presencePenalty, reasoningEffort, temperature, stop, seed } = parameters;
  return {
    model,
    messages: speakSystemOnly(turns),
    max_completion_tokens: maxOutputTokens,
    ...givenFields({
      ...{ temperature, top_p: topP, stop, seed, reasoning_effort: reasoningEffort },
      ...{ frequency_penalty: frequencyPenalty, presence_penalty: presencePenalty },
    }),
  };
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['content_filter', 'blocked'],
]);

const usage = z
  .object({ prompt_tokens: tokenCount, completion_tokens: tokenCount })
  .nullish()
  .catch(undefined);
const said = z.object({ content: z.string().nullish(), refusal: z.string().nullish() });

const completion = z.object({
  model: modelName,
  choices: z.array(z.object({ message: said, finish_reason: z.string() })),
  usage,
});

const chunk = z.object({
  model: modelName,
  choices: z.array(z.object({ delta: said.nullish(), finish_reason: z.string().nullish() })),
  usage,
});

function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  return { inputTokens: counts?.prompt_tokens, outputTokens: counts?.completion_tokens };
}

function readError(error: unknown): ErrorFacts {
  if (!(error instanceof APIError)) return {};
  return {
    status: error.status,
    words: [error.code, error.type],
    header: (name) => error.headers?.get(name),
  };
}
