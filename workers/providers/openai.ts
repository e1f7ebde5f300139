import OpenAI, { APIError } from 'openai';
import type { ParameterName } from '../../shared/protocol/model-parameters.js';
import { errorIn } from './answer-fields.js';
import { chatCompletions } from './chat-completions.js';
import type { ErrorFacts } from './error-classification.js';
import type { HttpClient } from './http-client.js';
import { reuseRequest } from './patches/sdk-requests.js';
import type { Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { createSdkFetch, sdkTimeoutMs } from './sdk-fetch.js';

/** How to reach OpenAI, or anything that speaks one of its APIs. */
interface OpenAiSettings {
  apiKey: string;
  /** Includes the version, as the SDK has it: `https://api.openai.com/v1`. */
  baseUrl?: string | undefined;
}

/** One of OpenAI's APIs, by the client that calls it. */
interface Wire {
  parts(client: OpenAI, request: ProviderRequest, isStreamed: boolean): AsyncIterable<ReplyPart>;
}

/**
 * OpenAI's models, and those of servers that speak its API. System turns stay where they are, and any order of roles is
 * accepted.
 */
export function createOpenAiProvider(settings: OpenAiSettings, http: HttpClient): Provider {
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
  const wire: Wire = { parts: chatCompletions };
  return {
    id: 'openai',
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) => wire.parts(client, own, onDelta !== undefined);
      return callProvider({ provider: 'openai', request, parts, readError }, onDelta);
    },
    close: () => http.close(),
  };
}

function readError(error: unknown): ErrorFacts {
  if (!(error instanceof APIError)) return {};
  const { code, type, param, message: text = error.message, details } = errorIn(error.error);
  const header = (name: string) => error.headers?.get(name);
  return { status: error.status, words: [code, type], param, text, details, header };
}
