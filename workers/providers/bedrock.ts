import type { AgentOptions } from 'node:http';
import { Readable } from 'node:stream';
import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { z } from 'zod';
import { tokenCount } from './answer-fields.js';
import type { ErrorFacts } from './error-classification.js';
import { toAlternating } from './message-shaping.js';
import type { FinishReason, Provider, ProviderRequest } from './provider.js';
import { callProvider, type ReplyPart } from './provider-call.js';
import { givenFields } from './request-fields.js';
import { limitResponse, type ResponseLimits } from './response-limit.js';

/** How to reach Amazon Bedrock. */
export interface BedrockSettings {
  region: string;
  /** Left out, the SDK works it out from the region. */
  endpoint?: string;
  /** Connections at once; at least as many as there are calls at once, or calls wait for each other. */
  maxSockets: number;
  /** Left out, the SDK walks the AWS credential chain. */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
}

/**
 * Bedrock's Converse API. System texts have a field of their own; turns must alternate, start with the user and
 * not be blank. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export function createBedrockProvider(
  { region, endpoint, maxSockets, credentials }: BedrockSettings,
  limits: ResponseLimits,
): Provider {
  const agent = { keepAlive: true, maxSockets };
  const client = new BedrockRuntimeClient({
    region,
    ...(endpoint !== undefined && { endpoint }),
    // Named, because a bearer token in the environment would come before keys that are given.
    ...(credentials && { credentials, authSchemePreference: ['sigv4'] }),
    maxAttempts: 1,
    // HTTP/1.1 in place of the SDK's HTTP/2, whose shared session would carry every call of the process.
    requestHandler: new LimitedHttpHandler(agent, limits),
    logger: silence,
  });
  return {
    id: 'bedrock',
    run: (request, onDelta) => {
      const parts = (signal: AbortSignal) => (onDelta ? streamed : whole)(client, request, signal);
      return callProvider({ request, parts, readError }, onDelta);
    },
    close: () => client.destroy(),
  };
}

const ignore = () => {};
const silence = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

/** The SDK's own handler, which would read answers of any size. */
class LimitedHttpHandler extends NodeHttpHandler {
  readonly #limits: ResponseLimits;

  constructor(agent: AgentOptions, limits: ResponseLimits) {
    super({ httpAgent: agent, httpsAgent: agent, logger: silence });
    this.#limits = limits;
  }

  override async handle(...call: Parameters<NodeHttpHandler['handle']>) {
    const { response } = await super.handle(...call);
    const body = Readable.from(limitResponse(response.body, this.#limits), { objectMode: false });
    return { response: Object.assign(response, { body }) };
  }
}

async function* whole(
  client: BedrockRuntimeClient,
  request: ProviderRequest,
  abortSignal: AbortSignal,
): AsyncGenerator<ReplyPart> {
  const answer = converseAnswer.parse(
    await client.send(new ConverseCommand(toInput(request)), { abortSignal }),
  );
  yield {
    text: answer.output.message.content.map((block) => block.text ?? '').join(''),
    reason: finishReasons.get(answer.stopReason),
    usage: answer.usage,
  };
}

async function* streamed(
  client: BedrockRuntimeClient,
  request: ProviderRequest,
  abortSignal: AbortSignal,
): AsyncGenerator<ReplyPart> {
  const answer = await client.send(new ConverseStreamCommand(toInput(request)), { abortSignal });
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
  };
}
