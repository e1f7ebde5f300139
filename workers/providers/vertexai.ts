import { ApiError, GoogleGenAI, type GoogleGenAIOptions } from '@google/genai';
import { z } from 'zod';
import { readJson } from '../../shared/json.js';
import { type EndWord, endOf, errorIn, modelName, tokenCount } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { toJsonText } from './exact-json.js';
import { HttpClient, type ResponseLimits } from './http-client.js';
import type { Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { createSdkFetch, toFetchOptions } from './sdk-fetch.js';
import { toBody } from './vertexai-body.js';

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

/** The argument of the SDK's methods. */
function toParameters(request: ProviderRequest, { fetch }: Exchange) {
  const { config, ...body } = toBody(request);
  // On by default, continuation would call the provider again by itself when a reply breaks off.
  const how = { automaticContinuation: false, httpOptions: { fetch } };
  return { ...body, config: { ...config, ...how } };
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
  const said = answer.parse(await client.models.generateContent(parameters));
  for (const part of toParts(said, 0)) yield part;
  const { candidates, promptFeedback, usageMetadata } = said;
  // A complete answer without candidates is one that says nothing; the counted prompt tells it from something else.
  const saysNothing = !candidates?.[0] && usageMetadata?.promptTokenCount !== undefined;
  if (saysNothing && !promptFeedback?.blockReason) yield { reason: 'stop' };
}

async function* streamed(client: GoogleGenAI, parameters: Parameters): AsyncGenerator<ReplyPart> {
  let calls = 0;
  for await (const chunk of await client.models.generateContentStream(parameters)) {
    for (const part of toParts(answer.parse(chunk), calls)) {
      if (part.call) calls += 1;
      yield part;
    }
  }
}

/**
 * One part for each call, with the text before it, and one for the rest; the keys of the calls begin at `firstKey`.
 * Reads the fields itself: the SDK's own `text` warns on the console about parts that are not text.
 */
function toParts(
  { candidates, promptFeedback, ...said }: z.infer<typeof answer>,
  firstKey: number,
): ReplyPart[] {
  const candidate = candidates?.[0];
  const reason = promptFeedback?.blockReason ? 'blocked' : endOf(finishReasons, candidate?.finishReason);
  const rest = { text: '', reason, model: said.modelVersion, usage: toUsage(said.usageMetadata) };
  const parts: ReplyPart[] = [];
  for (const { text, thought, functionCall, thoughtSignature } of candidate?.content?.parts ?? []) {
    if (!thought) rest.text += text ?? '';
    if (!functionCall || reason === 'blocked') continue;
    const { id, name, args } = functionCall;
    const call = { key: firstKey + parts.length, id, name, arguments: toJsonText(args) ?? '{}' };
    parts.push({ text: rest.text, call: { ...call, signature: thoughtSignature } });
    rest.text = '';
  }
  return [...parts, rest];
}

const finishReasons: ReadonlyMap<string, EndWord> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'blocked'],
  ['RECITATION', 'blocked'],
  ['BLOCKLIST', 'blocked'],
  ['PROHIBITED_CONTENT', 'blocked'],
  ['SPII', 'blocked'],
  ['MALFORMED_FUNCTION_CALL', 'malformed'],
  ['UNEXPECTED_TOOL_CALL', 'malformed'],
  ['TOO_MANY_TOOL_CALLS', 'malformed'],
  ['MALFORMED_RESPONSE', 'malformed'],
]);

const usage = z
  .object({
    promptTokenCount: tokenCount,
    candidatesTokenCount: tokenCount,
    cachedContentTokenCount: tokenCount,
    thoughtsTokenCount: tokenCount,
  })
  .optional()
  .catch(undefined);
const part = z.object({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  functionCall: z
    .object({ id: z.string().optional(), name: z.string().optional(), args: z.unknown().optional() })
    .optional(),
});

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
  if (counts === undefined) return undefined;
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = counts;
  // The other providers count thinking tokens as output, so they are added here, also if no text came.
  const outputTokens =
    candidatesTokenCount === undefined && thoughtsTokenCount === undefined
      ? undefined
      : (candidatesTokenCount ?? 0) + (thoughtsTokenCount ?? 0);
  return {
    inputTokens: promptTokenCount,
    outputTokens,
    cachedTokens: counts.cachedContentTokenCount,
    reasoningTokens: thoughtsTokenCount,
  };
}

function readError(error: unknown, answer: Response | undefined): ErrorFacts {
  return {
    // An error inside a stream has a status of its own, after the answer's 200.
    status: error instanceof ApiError ? error.status : answer?.status,
    header: (name) => answer?.headers.get(name),
    ...(error instanceof ApiError && saidBy(error)),
  };
}

/** The SDK's message is the body as JSON, behind a few words if it comes inside a stream. */
function saidBy({ message }: ApiError): Pick<ErrorFacts, 'text' | 'details'> {
  const { message: text, details } = errorIn(readJson(message.slice(message.search(/[[{]/))));
  return { text, details };
}
