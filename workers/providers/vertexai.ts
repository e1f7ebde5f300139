import { ApiError, GoogleGenAI, type GoogleGenAIOptions } from '@google/genai';
import { z } from 'zod';
import { Failure } from '../../shared/failures.js';
import { givenFields } from '../../shared/given-fields.js';
import { modelName, tokenCount } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { HttpClient, type ResponseLimits } from './http-client.js';
import { toAlternating } from './message-shaping.js';
import type { FinishReason, Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { createSdkFetch, toFetchOptions } from './sdk-fetch.js';

type AuthClient = NonNullable<NonNullable<GoogleGenAIOptions['googleAuthOptions']>['authClient']>;

/** How to reach Vertex AI: with an API key ("express mode"), or in a project with Google's default credentials. */
export type VertexAiSettings = { baseUrl?: string | undefined } & (
  | { apiKey: string }
  | { project: string; location: string; authClient?: AuthClient }
);

/**
 * Gemini models on Vertex AI. System texts have a field of their own; turns must not end on the model nor be empty.
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
 */
export function createVertexAiProvider(settings: VertexAiSettings, limits: ResponseLimits): Provider {
  const http = new HttpClient(limits);
  const fetch = createSdkFetch(http);
  const client = new GoogleGenAI({
    vertexai: true,
    ...toCredentials(settings),
    ...(settings.baseUrl !== undefined && { httpOptions: { baseUrl: settings.baseUrl } }),
  });
  return {
    id: 'vertexai',
    run: (request, onDelta) => {
      let exchange: Exchange = { fetch };
      const parts = (own: ProviderRequest) => {
        exchange = createExchange(fetch, own);
        return (onDelta ? streamed : whole)(client, toParameters(own, exchange));
      };
      const readOwnError = (error: unknown) => readError(error, exchange.answer);
      return callProvider({ request, parts, readError: readOwnError }, onDelta);
    },
    close: () => http.close(),
  };
}

function toCredentials(settings: VertexAiSettings): GoogleGenAIOptions {
  // Project and location are filled so that the SDK takes neither from the environment, nor prints that it did not.
  if ('apiKey' in settings) return { apiKey: settings.apiKey, project: '', location: 'global' };
  const { project, location, authClient } = settings;
  return { project, location, ...(authClient && { googleAuthOptions: { authClient } }) };
}

interface Exchange {
  fetch: typeof fetch;
  answer?: Response;
}

/** Keeps the raw answer of one call, because the SDK's errors drop its headers (`Retry-After`). */
function createExchange(fetch: typeof globalThis.fetch, request: ProviderRequest): Exchange {
  const exchange: Exchange = {
    fetch: async (input, init) => {
      exchange.answer = await fetch(input, { ...init, ...toFetchOptions(request) });
      return exchange.answer;
    },
  };
  return exchange;
}

type Parameters = ReturnType<typeof toParameters>;

async function* whole(client: GoogleGenAI, parameters: Parameters): AsyncGenerator<ReplyPart> {
  const part = toPart(await client.models.generateContent(parameters));
  // A complete answer without candidates is one that says nothing; the counted prompt tells it from something else.
  const saysNothing = !part.text && part.usage?.inputTokens !== undefined;
  yield { ...part, reason: part.reason ?? (saysNothing ? 'stop' : undefined) };
}

async function* streamed(client: GoogleGenAI, parameters: Parameters): AsyncGenerator<ReplyPart> {
  for await (const chunk of await client.models.generateContentStream(parameters)) yield toPart(chunk);
}

function toParameters(
  { turns, model, maxOutputTokens, parameters = {} }: ProviderRequest,
  { fetch }: Exchange,
) {
  // The model becomes part of the address; the SDK refuses only some of what does not belong there.
  if (!/^[\w.@:/-]+$/.test(model) || model.includes('..')) throw new Failure('provider_rejected');
  const { system, turns: alternating } = toAlternating(turns);
  const { temperature, topP, stop: stopSequences, seed, frequencyPenalty, presencePenalty } = parameters;
  return {
    model,
    contents: alternating.map(({ role, content }) => ({
      role: role === 'assistant' ? 'model' : 'user',
      parts: [{ text: content }],
    })),
    config: {
      maxOutputTokens,
      ...givenFields({ temperature, topP, stopSequences, seed, frequencyPenalty, presencePenalty }),
      // On by default, it would call the provider again by itself when a reply breaks off.
      automaticContinuation: false,
      httpOptions: { fetch },
      ...(system !== undefined && { systemInstruction: { parts: [{ text: system }] } }),
    },
  };
}

/** Reads the fields itself: the SDK's own `text` warns on the console about parts that are not text. */
function toPart(raw: unknown): ReplyPart {
  const { candidates, promptFeedback, modelVersion, usageMetadata } = answer.parse(raw);
  const candidate = candidates?.[0];
  const parts = candidate?.content?.parts ?? [];
  return {
    text: parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join(''),
    reason: promptFeedback?.blockReason ? 'blocked' : finishReasons.get(candidate?.finishReason ?? ''),
    model: modelVersion,
    usage: toUsage(usageMetadata),
  };
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'blocked'],
  ['RECITATION', 'blocked'],
  ['BLOCKLIST', 'blocked'],
  ['PROHIBITED_CONTENT', 'blocked'],
  ['SPII', 'blocked'],
]);

const usage = z
  .object({ promptTokenCount: tokenCount, candidatesTokenCount: tokenCount, thoughtsTokenCount: tokenCount })
  .optional()
  .catch(undefined);
const part = z.object({ text: z.string().optional(), thought: z.boolean().optional() });

const answer = z.object({
  candidates: z
    .array(
      z.object({
        content: z.object({ parts: z.array(part).nullish() }).nullish(),
        finishReason: z.string().nullish(),
      }),
    )
    .nullish(),
  promptFeedback: z.object({ blockReason: z.string().nullish() }).nullish(),
  modelVersion: modelName,
  usageMetadata: usage,
});

function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = counts ?? {};
  // The other providers count thinking tokens as output, so they are added here, also if no text came.
  const outputTokens =
    candidatesTokenCount === undefined && thoughtsTokenCount === undefined
      ? undefined
      : (candidatesTokenCount ?? 0) + (thoughtsTokenCount ?? 0);
  return { inputTokens: promptTokenCount, outputTokens };
}

function readError(error: unknown, answer: Response | undefined): ErrorFacts {
  return {
    // An error inside a stream has a status of its own, after the answer's 200.
    status: error instanceof ApiError ? error.status : answer?.status,
    header: (name) => answer?.headers.get(name),
    text: error instanceof ApiError ? error.message : undefined,
  };
}
