import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { z } from 'zod';
import { givenFields } from '../../shared/given-fields.js';
import { tokenCount } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { HttpClient, type ResponseLimits, singleFields } from './http-client.js';
import { toAlternating } from './message-shaping.js';
import type { FinishReason, Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';

/** How to reach Amazon Bedrock. */
export interface BedrockSettings {
  region: string;
  /** Left out, the SDK works it out from the region. */
  endpoint?: string | undefined;
  /** Left out, the SDK walks the AWS credential chain. */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
}

/**
 * Bedrock's Converse API. System texts have a field of their own; turns must alternate, start with the user and
 * not be blank. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export function createBedrockProvider(
  { region, endpoint, credentials }: BedrockSettings,
  limits: ResponseLimits,
): Provider {
  const client = new BedrockRuntimeClient({
    region,
    ...(endpoint !== undefined && { endpoint }),
    // Named, because a bearer token in the environment would come before keys that are given.
    ...(credentials && { credentials, authSchemePreference: ['sigv4'] }),
    maxAttempts: 1,
    requestHandler: createRequestHandler(new HttpClient(limits)),
    logger: silence,
  });
  return {
    id: 'bedrock',
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) => (onDelta ? streamed : whole)(client, own);
      return callProvider({ request, parts, readError }, onDelta);
    },
    close: () => client.destroy(),
  };
}

const ignore = () => {};
const silence = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

type RequestHandler = BedrockRuntimeClient['config']['requestHandler'];

/** The options of a command that the SDK passes on. */
interface CallOptions {
  abortSignal?: AbortSignal;
  traceparent?: string | undefined;
}

const toOptions = ({ signal: abortSignal, traceparent }: ProviderRequest): CallOptions => ({
  abortSignal,
  traceparent,
});

/** Sends the requests of the SDK, and those of its credential providers, which take over the client's handler. */
function createRequestHandler(http: HttpClient): Pick<RequestHandler, 'metadata' | 'handle' | 'destroy'> {
  return {
    // HTTP/1.1 in place of the SDK's HTTP/2, whose shared session would carry every call of the process.
    metadata: { handlerProtocol: 'http/1.1' },
    handle: async ({ protocol, hostname, port, path, query, method, headers, body }, options) => {
      const { abortSignal: signal, traceparent } = (options ?? {}) as CallOptions;
      const answer = await http.send({
        origin: `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`,
        path: path + toSearch(query),
        ...{ method, headers, body, signal, traceparent },
      });
      const { status: statusCode, body: content } = answer;
      return { response: { statusCode, headers: singleFields(answer.headers), body: content } };
    },
    destroy: () => http.close(),
  };
}

type Query = Record<string, string | string[] | null>;

function toSearch(query: Query = {}): string {
  const fields = Object.entries(query).flatMap(([name, values]) =>
    [values ?? []].flat().map((value) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`),
  );
  return fields.length === 0 ? '' : `?${fields.join('&')}`;
}

async function* whole(client: BedrockRuntimeClient, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const command = new ConverseCommand(toInput(request));
  const answer = converseAnswer.parse(await client.send(command, toOptions(request)));
  yield {
    text: answer.output.message.content.map((block) => block.text ?? '').join(''),
    reason: finishReasons.get(answer.stopReason),
    usage: answer.usage,
  };
}

async function* streamed(client: BedrockRuntimeClient, request: ProviderRequest): AsyncGenerator<ReplyPart> {
  const answer = await client.send(new ConverseStreamCommand(toInput(request)), toOptions(request));
  for await (const raw of answer.stream ?? []) {
    const event = streamEvent.parse(raw);
    yield {
      text: event.contentBlockDelta?.delta.text,
      reason: event.messageStop && finishReasons.get(event.messageStop.stopReason),
      usage: event.metadata?.usage,
    };
  }
}

function toInput({ turns, model, maxOutputTokens, parameters = {} }: ProviderRequest): ConverseCommandInput {
  const { system, turns: alternating } = toAlternating(turns);
  const { temperature, topP, stop: stopSequences } = parameters;
  return {
    modelId: model,
    messages: alternating.map(({ role, content }) => ({ role, content: [{ text: content }] })),
    inferenceConfig: { maxTokens: maxOutputTokens, ...givenFields({ temperature, topP, stopSequences }) },
    ...(system !== undefined && { system: [{ text: system }] }),
  };
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filtered', 'blocked'],
  ['guardrail_intervened', 'blocked'],
]);

const usage = z.object({ inputTokens: tokenCount, outputTokens: tokenCount }).optional().catch(undefined);
const block = z.object({ text: z.string().optional() });

const converseAnswer = z.object({
  output: z.object({ message: z.object({ content: z.array(block) }) }),
  stopReason: z.string(),
  usage,
});

const streamEvent = z.object({
  contentBlockDelta: z.object({ delta: block }).optional(),
  messageStop: z.object({ stopReason: z.string() }).optional(),
  metadata: z.object({ usage }).optional(),
});

// The SDK's own exceptions carry `$metadata`; its parser's errors (HTML, truncated JSON) only the raw `$response`.
const sdkError = z.object({
  name: z.string(),
  message: z.string().optional().catch(undefined),
  $metadata: z.object({ httpStatusCode: z.number().optional() }).optional().catch(undefined),
  $response: z
    .object({ statusCode: z.number().optional(), headers: z.record(z.string(), z.string()).optional() })
    .optional()
    .catch(undefined),
});

function readError(error: unknown): ErrorFacts {
  const { data } = sdkError.safeParse(error);
  return {
    status: data?.$metadata?.httpStatusCode ?? data?.$response?.statusCode,
    words: [data?.name],
    header: (name) => data?.$response?.headers?.[name],
    text: data?.message,
  };
}
