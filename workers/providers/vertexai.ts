import { ApiError, GoogleGenAI, type GoogleGenAIOptions } from '@google/genai';
import { z } from 'zod';
import { readJson } from '../../shared/json.js';
import { endReader, errorIn, modelName, tokenCount, tokenCounts } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { toJsonText } from './exact-json.js';
import type { HttpClient } from './http-client.js';
import type { Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { createSdkFetch, toFetchOptions } from './sdk-fetch.js';
import { toBody } from './vertexai-body.js';

type AuthClient = NonNullable<NonNullable<GoogleGenAIOptions['googleAuthOptions']>['authClient']>;

/** How to reach Vertex AI: with an API key ("express mode"), or in a project with Google's default credentials. */
type VertexAiSettings = { baseUrl?: string | undefined } & (
  | { apiKey: string }
  | { project: string; location: string; authClient?: AuthClient }
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
    run: (request, onDelta) => {
      // Kept, because the SDK's errors drop its headers (`Retry-After`).
      let response: Response | undefined;
      const parts = (own: ProviderRequest) => {
        const ownFetch: typeof fetch = async (input, init) => {
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

function toCredentials(settings: VertexAiSettings): GoogleGenAIOptions {
  // Project and location are filled so that the SDK takes neither from the environment, nor prints that it did not.
  if ('apiKey' in settings) return { apiKey: settings.apiKey, project: '', location: 'global' };
  const { project, location, authClient } = settings;
  return { project, location, ...(authClient && { googleAuthOptions: { authClient } }) };
}

/** The argument of the SDK's methods. */
function toParameters(request: ProviderRequest, fetch: typeof globalThis.fetch) {
  const { config, ...body } = toBody(request);
  // On by default, continuation would call the provider again by itself when a reply breaks off.
  return { ...body, config: { ...config, automaticContinuation: false, httpOptions: { fetch } } };
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
function toParts(said: z.infer<typeof answer>, firstKey: number): ReplyPart[] {
  const candidate = said.candidates?.[0];
  const isBlocked = said.promptFeedback?.blockReason;
  const reason = isBlocked ? 'blocked' : toEnd(candidate?.finishReason);
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

const toEnd = endReader({
  stop: ['STOP'],
  length: ['MAX_TOKENS'],
  blocked: ['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
  malformed: ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_RESPONSE'],
});

const usage = tokenCounts({
  promptTokenCount: tokenCount,
  candidatesTokenCount: tokenCount,
  cachedContentTokenCount: tokenCount,
  thoughtsTokenCount: tokenCount,
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
  usageMetadata: usage,
});

function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  if (!counts) return undefined;
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
  const header = (name: string) => answer?.headers.get(name);
  if (!(error instanceof ApiError)) return { status: answer?.status, header };
  // An error inside a stream has a status of its own, after the answer's 200.
  const { status, message } = error;
  // The SDK's message is the body as JSON, behind a few words if it comes inside a stream.
  const { message: text, details } = errorIn(readJson(message.slice(message.search(/[[{]/))));
  return { status, header, text, details };
}
