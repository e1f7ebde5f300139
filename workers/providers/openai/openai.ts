import OpenAI, { APIError } from 'openai';
import type { ParameterName } from '../../../shared/models/model-parameters.js';
import type { ErrorFacts } from '../errors/error-classification.js';
import type { HttpClient } from '../http/http-client.js';
import { reuseRequest } from '../http/patches/sdk-requests.js';
import { createSdkFetch, sdkTimeoutMs } from '../http/sdk-fetch.js';
import type { Provider, ProviderRequest } from '../provider.js';
import { errorIn } from '../reply/answer-fields.js';
import { callProvider } from '../reply/provider-call.js';
import { chatCompletions, isOpenAiHost } from './chat-completions.js';
import { responses } from './responses.js';

/** How to reach OpenAI, or anything that speaks one of its APIs. */
interface OpenAiSettings {
  apiKey: string;
  /** Includes the version, as the SDK has it: `https://api.openai.com/v1`. */
  baseUrl?: string | undefined;
  /** The API to speak; `auto`, or none, goes by the address. */
  wire?: WireName | 'auto' | undefined;
}

type WireName = 'responses' | 'chat';

/** The hints for which requests for responses have no field; nor have they one for texts to stop at. */
const ignores: ReadonlySet<ParameterName> = new Set(['seed', 'frequencyPenalty', 'presencePenalty']);

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
  const wire = wireOf(settings);
  const isResponses = wire === 'responses';
  const read = isResponses ? responses : chatCompletions;
  return {
    id: 'openai',
    ...(isResponses && { ignores }),
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) => read(client, own, own.isStreamed ?? Boolean(onDelta));
      const stops = isResponses ? request.parameters?.stop : undefined;
      const readOwn = (error: unknown) => readError(error, wire);
      return callProvider({ provider: 'openai', request, parts, readError: readOwn, stops }, onDelta);
    },
    close: () => http.close(),
  };
}

/** Responses at OpenAI, and chat completions at any other server, since all have those. */
export function wireOf({ wire = 'auto', baseUrl }: Pick<OpenAiSettings, 'wire' | 'baseUrl'>): WireName {
  if (wire !== 'auto') return wire;
  return baseUrl === undefined || isOpenAiHost(baseUrl) ? 'responses' : 'chat';
}

function readError(error: unknown, wire: WireName): ErrorFacts {
  if (!(error instanceof APIError)) return {};
  const { status } = error;
  const { code, type, param, message: text = error.message, details } = errorIn(error.error);
  const header = (name: string) => error.headers?.get(name);
  // A server that does not know the model says so.
  const isUnknownPath = wire === 'responses' && status === 404 && !/model|deployment/i.test(`${code}`);
  const advice = isUnknownPath ? 'OPENAI_WIRE=chat' : undefined;
  return { status, words: [code, type], param, text, details, header, advice };
}
