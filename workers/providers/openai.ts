import OpenAI, { APIError } from 'openai';
import { givenFields } from '../../shared/given-fields.js';
import type { ParameterName } from '../../shared/protocol/model-parameters.js';
import { errorIn } from './answer-fields.js';
import { chatCompletions } from './chat-completions.js';
import type { ErrorFacts } from './error-classification.js';
import type { HttpClient } from './http-client.js';
import { isOpenAiHost } from './openai-hosts.js';
import { reuseRequest } from './patches/sdk-requests.js';
import type { Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { responses } from './responses.js';
import { createSdkFetch, sdkTimeoutMs } from './sdk-fetch.js';

/** How to reach OpenAI, or anything that speaks one of its APIs. */
interface OpenAiSettings {
  apiKey: string;
  /** Includes the version, as the SDK has it: `https://api.openai.com/v1`. */
  baseUrl?: string | undefined;
  /** The API to speak; `auto`, or none, goes by the address. */
  wire?: WireName | 'auto' | undefined;
}

/** One of OpenAI's APIs. */
interface Wire {
  readonly parts: (client: OpenAI, request: ProviderRequest, isStreamed: boolean) => AsyncIterable<ReplyPart>;
  /** The hints that its requests have no field for. */
  readonly ignores?: ReadonlySet<ParameterName>;
  /** Whether its requests have no field for texts to stop at. */
  readonly isWithoutStop?: boolean;
}

const wires = {
  responses: {
    parts: responses,
    ignores: new Set(['seed', 'frequencyPenalty', 'presencePenalty']),
    isWithoutStop: true,
  },
  chat: { parts: chatCompletions },
} satisfies Record<string, Wire>;
type WireName = keyof typeof wires;

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
  const name = wireOf(settings);
  const wire: Wire = wires[name];
  return {
    id: 'openai',
    ...givenFields({ ignores: wire.ignores }),
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) => wire.parts(client, own, own.isStreamed ?? Boolean(onDelta));
      const stops = wire.isWithoutStop ? request.parameters?.stop : undefined;
      const readOwn = (error: unknown) => readError(error, name);
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
