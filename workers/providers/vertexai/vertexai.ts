import { ApiError, GoogleGenAI, type GoogleGenAIOptions } from '@google/genai';
import { z } from 'zod';
import { readJson } from '../../../shared/json/json.js';
import { type ErrorFacts, unusableAnswer } from '../errors/error-classification.js';
import type { HttpClient } from '../http/http-client.js';
import { createSdkFetch, toFetchOptions } from '../http/sdk-fetch.js';
import type { Provider, ProviderRequest } from '../provider.js';
import {
  answerId,
  endReader,
  errorIn,
  listOf,
  modelName,
  tierName,
  tokenCount,
  tokenCounts,
} from '../reply/answer-fields.js';
import { toJsonText } from '../reply/exact-json.js';
import { callProvider, type ReplyPart } from '../reply/provider-call.js';
import { maxParsedLength, toBody, toOpaque } from './vertexai-body.js';

type AuthClient = NonNullable<NonNullable<GoogleGenAIOptions['googleAuthOptions']>['authClient']>;

/** How to reach Vertex AI: with an API key ("express mode"), or in a project with Google's default credentials. */
type VertexAiSettings = { baseUrl?: string | undefined } & (
  | { apiKey: string }
  | { project: string; location?: string | undefined; authClient?: AuthClient }
);

/**
 * Gemini models on Vertex AI. System texts have a field of their own; turns must not end on the model nor be empty.
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
 */
export function createVertexAiProvider(settings: VertexAiSettings, http: HttpClient): Provider {
  const fetch = createSdkFetch(http);
  const client = new GoogleGenAI({
    vertexai: true,
    ...toCredentials(settings),
    ...(settings.baseUrl !== undefined && { httpOptions: { baseUrl: settings.baseUrl } }),
  });
  return {
    id: 'vertexai',
    parsesResultsTo: maxParsedLength,
    run: (request, onDelta) => {
      // Kept, because the SDK's errors drop its headers (`Retry-After`).
      let response: Response | undefined;
      let requests = 0;
      const parts = (own: ProviderRequest) => {
        const ownFetch: typeof fetch = async (input, init) => {
          own.signal.throwIfAborted();
          requests += 1;
          if (requests > maxRequests) throw unusableAnswer('oversized');
          response = await fetch(input, { ...init, ...toFetchOptions(own) });
          return response;
        };
        return ((own.isStreamed ?? onDelta) ? streamed : whole)(client, toParameters(own, ownFetch));
      };
      const readOwn = (error: unknown) => readError(error, response);
      return callProvider({ provider: 'vertexai', request, parts, readError: readOwn }, onDelta);
    },
    close: () => http.close(),
  };
}

/** The most requests for one reply: it would be longer than any model writes. */
const maxRequests = 32;

function toCredentials(settings: VertexAiSettings): GoogleGenAIOptions {
  // Project and location are filled so that the SDK takes neither from the environment, nor prints that it did not.
  if ('apiKey' in settings) return { apiKey: settings.apiKey, project: '', location: 'global' };
  const { project, location = 'global', authClient } = settings;
  return { project, location, ...(authClient && { googleAuthOptions: { authClient } }) };
}

/**
 * The argument of the SDK's methods. Where a reply is longer than Vertex AI writes at once, or breaks off behind a
 * token by which it can go on, they ask again with that token by themselves, and add up the usage.
 */
function toParameters(request: ProviderRequest, fetch: typeof globalThis.fetch) {
  const { config, ...body } = toBody(request);
  return { ...body, config: { ...config, automaticContinuation: true, httpOptions: { fetch } } };
}

type Parameters = ReturnType<typeof toParameters>;

async function* whole(client: GoogleGenAI, parameters: Parameters): AsyncGenerator<ReplyPart> {
  const response = answer.parse(await client.models.generateContent(parameters));
  yield* toParts(response, 0);
  const { candidates, promptFeedback, usageMetadata } = response;
  // A complete answer without candidates is one that says nothing; the counted prompt tells it from something else.
  const saysNothing = !candidates?.[0] && usageMetadata?.promptTokenCount !== undefined;
  if (saysNothing && !promptFeedback?.blockReason) yield { reason: 'stop' };
}

async function* streamed(client: GoogleGenAI, parameters: Parameters): AsyncGenerator<ReplyPart> {
  let chunks = 0;
  for await (const chunk of await client.models.generateContentStream(parameters))
    yield* toParts(answer.parse(chunk), chunks++);
}

/**
 * The parts of an answer in their order; the last has the rest of what it says. Reads the fields itself: the SDK's own
 * `text` warns on the console about parts that are not text.
 */
function toParts(response: z.infer<typeof answer>, chunk: number): ReplyPart[] {
  const candidate = response.candidates?.[0];
  const reason = response.promptFeedback?.blockReason ? 'blocked' : toEnd(candidate?.finishReason);
  const written = reason === 'blocked' ? [] : (candidate?.content?.parts ?? []);
  const parts = written.flatMap((part, place) => toPieces(part, `${chunk} ${place}`));
  const { modelVersion: model, responseId, usageMetadata } = response;
  const counted = { usage: toUsage(usageMetadata), tier: usageMetadata?.trafficType };
  const rest = { reason, model, answerId: responseId, ...counted };
  return [...parts.slice(0, -1), { ...parts.at(-1), ...rest }];
}

/**
 * The signature of a call stands before it, and that of a text behind it, since it may come with an empty part.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
function toPieces(piece: z.infer<typeof part>, key: string): ReplyPart[] {
  const { text, thought, functionCall, thoughtSignature } = piece;
  if (thought) return [{ thinking: text }];
  const of = functionCall ? 'call' : 'text';
  const opaque = thoughtSignature === undefined ? undefined : toOpaque({ thoughtSignature, of });
  if (!functionCall) return opaque ? [{ text }, { opaque }] : [{ text }];
  const { id, name, args } = functionCall;
  return [{ opaque, call: { key, id, name, arguments: toJsonText(args) ?? '{}' } }];
}

// `CONTINUATION` is met by the SDK, which asks for the rest; without a token for that it is a word like a new one.
const toEnd = endReader({
  stop: ['STOP'],
  length: ['MAX_TOKENS'],
  blocked: listOf(`
    SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE
    IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION
  `),
  malformed: ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_RESPONSE'],
});

const usage = tokenCounts({
  promptTokenCount: tokenCount,
  toolUsePromptTokenCount: tokenCount,
  candidatesTokenCount: tokenCount,
  cachedContentTokenCount: tokenCount,
  thoughtsTokenCount: tokenCount,
  trafficType: tierName,
});
const text = z.string().optional();
const functionCall = z.object({ id: text, name: text, args: z.unknown().optional() });
const part = z.object({
  text,
  thought: z.boolean().optional(),
  thoughtSignature: text,
  functionCall: functionCall.optional(),
});
const candidate = z.object({
  content: z.object({ parts: z.array(part).nullish() }).nullish(),
  finishReason: z.string().nullish(),
});

const answer = z.object({
  candidates: z.array(candidate).nullish(),
  promptFeedback: z.object({ blockReason: z.string().nullish() }).nullish(),
  modelVersion: modelName,
  responseId: answerId,
  usageMetadata: usage,
});

function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  if (!counts) return undefined;
  const { promptTokenCount: prompt, candidatesTokenCount: written, thoughtsTokenCount: thought } = counts;
  return {
    inputTokens: prompt === undefined ? undefined : prompt + (counts.toolUsePromptTokenCount ?? 0),
    // The other providers count thinking tokens as output, so they are added here, also if no text came.
    outputTokens: written === undefined ? thought : written + (thought ?? 0),
    cachedTokens: counts.cachedContentTokenCount,
    reasoningTokens: thought,
  };
}

function readError(error: unknown, answer: Response | undefined): ErrorFacts {
  const header = (name: string) => answer?.headers.get(name);
  if (!(error instanceof ApiError)) return { status: answer?.status, header };
  // An error inside a stream has a status of its own, after the answer's 200.
  const { status, message } = error;
  // The SDK's message is the body as JSON, behind a few words if it comes inside a stream.
  const { message: text, details } = errorIn(readJson(message.slice(message.search(/[[{]/))));
  return { status, header, text, details };
}
