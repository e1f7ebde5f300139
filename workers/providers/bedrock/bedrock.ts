import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { z } from 'zod';
import type { ErrorFacts } from '../errors/error-classification.js';
import { type HttpClient, singleFields } from '../http/http-client.js';
import type { Provider, ProviderRequest } from '../provider.js';
import { endReader, tierName, tokenCount, tokenCounts, withCache } from '../reply/answer-fields.js';
import { toJsonText } from '../reply/exact-json.js';
import { callProvider, type ReplyPart } from '../reply/provider-call.js';
import { type InputOptions, type Thinking, toInput } from './bedrock-body.js';

/** How to reach Amazon Bedrock. */
interface BedrockSettings extends InputOptions {
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
export function createBedrockProvider(settings: BedrockSettings, http: HttpClient): Provider {
  const { region, endpoint, credentials } = settings;
  const client = new BedrockRuntimeClient({
    region,
    ...(endpoint !== undefined && { endpoint }),
    // Named, because a bearer token in the environment would come before keys that are given.
    ...(credentials && { credentials, authSchemePreference: ['sigv4'] }),
    maxAttempts: 1,
    requestHandler: createRequestHandler(http),
    logger: silence,
  });
  return {
    id: 'bedrock',
    run: (request, onDelta) => {
      const parts = (own: ProviderRequest) =>
        ((own.isStreamed ?? onDelta) ? streamed : whole)(client, own, toInput(own, settings));
      return callProvider({ provider: 'bedrock', request, parts, readError }, onDelta);
    },
    close: () => client.destroy(),
  };
}

const ignore = () => {};
const silence = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

type RequestHandler = BedrockRuntimeClient['config']['requestHandler'];

/** The options of a command that the SDK passes on. */
const toOptions = ({ signal, traceparent, meter }: ProviderRequest) => ({
  abortSignal: signal,
  traceparent,
  meter,
});

/** Sends the requests of the SDK, and those of its credential providers, which take over the client's handler. */
function createRequestHandler(http: HttpClient): Pick<RequestHandler, 'metadata' | 'handle' | 'destroy'> {
  return {
    // HTTP/1.1 in place of the SDK's HTTP/2, whose shared session would carry every call of the process.
    metadata: { handlerProtocol: 'http/1.1' },
    handle: async ({ protocol, hostname, port, path, query, method, headers, body }, options) => {
      const given = (options ?? {}) as Partial<ReturnType<typeof toOptions>>;
      const { abortSignal: signal, traceparent, meter } = given;
      const answer = await http.send({
        origin: `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`,
        path: path + toSearch(query),
        method,
        headers,
        body,
        signal,
        traceparent,
        meter,
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

type Input = ReturnType<typeof toInput>;

/** Completes the body of a command, and gives the signer its digest, which it would take in this thread. */
function fillBodyOf(
  command: ConverseCommand | ConverseStreamCommand,
  { fillBody }: Pick<ProviderRequest, 'fillBody'>,
): void {
  if (fillBody === undefined) return;
  // Only their answers differ, which it hands on.
  const { middlewareStack } = command as ConverseCommand;
  // The SDK takes the body's length in the same step, and signs it in the next one.
  const options = { step: 'build', priority: 'high', name: 'fillBody' } as const;
  middlewareStack.add(
    (next) => async (args) => {
      const request = args.request as { body: Uint8Array; headers: Record<string, string> };
      const body = (await fillBody(new TextDecoder().decode(request.body))) as Uint8Array<ArrayBuffer>;
      const digest = Buffer.from(await crypto.subtle.digest('SHA-256', body)).toString('hex');
      const headers = { ...request.headers, 'x-amz-content-sha256': digest };
      return next({ ...args, request: Object.assign(request, { body, headers }) });
    },
    options,
  );
}

type Client = BedrockRuntimeClient;

async function* whole(client: Client, request: ProviderRequest, input: Input): AsyncGenerator<ReplyPart> {
  const command = new ConverseCommand(input);
  fillBodyOf(command, request);
  const answer = converseAnswer.parse(await client.send(command, toOptions(request)));
  const { stopReason, serviceTier: tier } = answer;
  const counted = { usage: toUsage(answer.usage, request.model), tier: tier?.type };
  yield { reason: toEnd(stopReason), ...counted };
  const blocks = new Blocks();
  yield* answer.output.message.content.map((block, index) => blocks.add(index, block));
  yield { opaque: blocks.end() };
}

async function* streamed(client: Client, request: ProviderRequest, input: Input): AsyncGenerator<ReplyPart> {
  const command = new ConverseStreamCommand(input);
  fillBodyOf(command, request);
  const answer = await client.send(command, toOptions(request));
  const blocks = new Blocks();
  for await (const raw of answer.stream ?? []) {
    const { contentBlockStart, contentBlockDelta, contentBlockStop, ...event } = streamEvent.parse(raw);
    const { messageStop, metadata } = event;
    const { contentBlockIndex: index = 0 } = contentBlockStart ?? contentBlockDelta ?? contentBlockStop ?? {};
    const piece = contentBlockStart?.start ?? contentBlockDelta?.delta;
    yield {
      ...(piece && blocks.add(index, piece)),
      ...(contentBlockStop && { opaque: blocks.end(), call: { key: index, isEnded: true } }),
      reason: toEnd(messageStop?.stopReason),
      ...(metadata && {
        usage: toUsage(metadata.usage, request.model),
        tier: metadata.serviceTier?.type,
      }),
    };
  }
}

/** The blocks of an answer, or pieces of them. A block of thinking is whole at its end, or when the next one begins. */
class Blocks {
  #key: number | undefined;
  #textKey: number | undefined;
  #thinking: z.infer<typeof reasoning>[] = [];

  add(key: number, { text, toolUse, reasoningContent }: z.infer<typeof block>): ReplyPart {
    const opaque = key === this.#key ? undefined : this.end();
    this.#key = key;
    if (reasoningContent) {
      this.#thinking.push(reasoningContent);
      const { redactedContent, ...thought } = reasoningContent;
      const { text: thinking = '', signature } = thought.reasoningText ?? thought;
      return { opaque, thinking, held: (redactedContent ?? signature)?.length };
    }
    if (text !== undefined) {
      const isNewText = key !== this.#textKey;
      this.#textKey = key;
      return { opaque, isNewText, text };
    }
    if (!toolUse) return { opaque };
    const { toolUseId: id, name, input } = toolUse;
    return { opaque, call: { key, id, name, arguments: toJsonText(input) } };
  }

  /** The thinking that has ended, if there is any. */
  end(): ReplyPart['opaque'] {
    const thinking = this.#thinking.length > 0 ? toThinking(this.#thinking) : undefined;
    this.#thinking = [];
    return thinking && { data: JSON.stringify(thinking) };
  }
}

/** One block of thinking of its pieces, with bytes as base64. Unsigned, no model takes it back. */
function toThinking(pieces: z.infer<typeof reasoning>[]): Thinking | undefined {
  const redacted = pieces.flatMap(({ redactedContent = [] }) => redactedContent);
  if (redacted.length > 0) return { redactedContent: Buffer.concat(redacted).toString('base64') };
  const texts = pieces.map((piece) => piece.reasoningText ?? piece);
  const [text, signature] = (['text', 'signature'] as const).map((name) =>
    texts.map((piece) => piece[name] ?? '').join(''),
  );
  return signature ? { reasoningText: { text: text ?? '', signature } } : undefined;
}

const toEnd = endReader({
  stop: ['end_turn', 'stop_sequence', 'tool_use'],
  length: ['max_tokens', 'model_context_window_exceeded'],
  blocked: ['content_filtered', 'guardrail_intervened'],
  malformed: ['malformed_tool_use', 'malformed_model_output'],
});

const usage = tokenCounts({
  inputTokens: tokenCount,
  outputTokens: tokenCount,
  cacheReadInputTokens: tokenCount,
  cacheWriteInputTokens: tokenCount,
  cacheDetails: z
    .array(z.object({ ttl: z.string(), inputTokens: tokenCount }))
    .optional()
    .catch(undefined),
});
const serviceTier = z.object({ type: tierName }).optional().catch(undefined);
const text = z.string().optional();
const reasoning = z.object({
  reasoningText: z.object({ text, signature: text }).optional(),
  redactedContent: z.instanceof(Uint8Array).optional(),
  text,
  signature: text,
});
const block = z.object({
  text,
  toolUse: z.object({ toolUseId: text, name: text, input: z.unknown().optional() }).optional(),
  reasoningContent: reasoning.optional(),
});

const converseAnswer = z.object({
  output: z.object({ message: z.object({ content: z.array(block) }) }),
  stopReason: z.string(),
  usage,
  serviceTier,
});

const contentBlockIndex = z.number().optional();

const streamEvent = z.object({
  contentBlockStart: z.object({ contentBlockIndex, start: block.optional() }).optional(),
  contentBlockDelta: z.object({ contentBlockIndex, delta: block.optional() }).optional(),
  contentBlockStop: z.object({ contentBlockIndex }).optional(),
  messageStop: z.object({ stopReason: z.string() }).optional(),
  metadata: z.object({ usage, serviceTier }).optional(),
});

/**
 * Tokens of the cache are counted beside the others, but within them for OpenAI's models, at least in streams.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html, https://github.com/maximhq/bifrost/pull/6942
 */
function toUsage(counts: z.infer<typeof usage>, model: string): ReplyPart['usage'] {
  const { inputTokens: input = 0, outputTokens } = counts ?? {};
  const { cacheReadInputTokens: read = 0, cacheWriteInputTokens: written = 0 } = counts ?? {};
  const isWithin = ofOpenAi.test(model) && input >= read + written;
  return {
    inputTokens: isWithin ? counts?.inputTokens : withCache(counts?.inputTokens, read, written),
    outputTokens,
    cachedTokens: counts?.cacheReadInputTokens,
    cacheWriteTokens: counts?.cacheWriteInputTokens,
    cacheWrite1hTokens: counts?.cacheDetails?.find(({ ttl }) => ttl === '1h')?.inputTokens,
  };
}

/** In an id, in that of an inference profile, or in the ARN of either. */
const ofOpenAi = /(^|[./])openai\./;

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
