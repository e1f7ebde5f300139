import Anthropic from '@anthropic-ai/sdk';
import {
  type Message as BedrockMessage,
  BedrockRuntimeClient,
  type ContentBlock,
  ConverseCommand,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { type Content, GoogleGenAI, type GoogleGenAIOptions } from '@google/genai';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import OpenAI from 'openai';
import type { ProviderId } from '../../../shared/contract.js';

/** What a client of the SDK got. */
export interface SdkReply {
  pieces: string[];
  finish: string | null | undefined;
  inputTokens: number | undefined;
}

/** Asks with the provider's own SDK: system "Be brief.", user "Hello 👋", assistant "Hi!", user "Go on". */
export type SdkAsk = (url: string, model: string, stream: boolean) => Promise<SdkReply>;

const system = 'Be brief.';
const spoken = [
  { role: 'user', content: 'Hello 👋' },
  { role: 'assistant', content: 'Hi!' },
  { role: 'user', content: 'Go on' },
] as const;

/** One asker per provider, and one more for Vertex AI's express mode. */
export const sdkAsks: Record<ProviderId | 'vertexai express', SdkAsk> = {
  openai: (url, model, stream) => askOpenAi(url, model, stream),
  anthropic: (url, model, stream) => askAnthropic(url, model, stream),
  bedrock: (url, model, stream) => askBedrock(url, model, stream),
  vertexai: (url, model, stream) => askVertex(inProject(url), model, stream),
  'vertexai express': (url, model, stream) => askVertex(express(url), model, stream),
};

async function askOpenAi(url: string, model: string, stream: boolean): Promise<SdkReply> {
  const client = new OpenAI({ apiKey: 'key', baseURL: `${url}/v1`, maxRetries: 0 });
  const request = {
    model,
    max_completion_tokens: 100,
    messages: [{ role: 'system' as const, content: system }, ...spoken],
  };
  if (!stream) {
    const { choices, usage } = await client.chat.completions.create(request);
    const pieces = [choices[0]?.message.content ?? ''];
    return { pieces, finish: choices[0]?.finish_reason, inputTokens: usage?.prompt_tokens };
  }
  const reply: SdkReply = { pieces: [], finish: undefined, inputTokens: undefined };
  const chunks = await client.chat.completions.create({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const { choices, usage } of chunks) {
    if (choices[0]?.delta.content) reply.pieces.push(choices[0].delta.content);
    reply.finish = choices[0]?.finish_reason ?? reply.finish;
    reply.inputTokens = usage?.prompt_tokens ?? reply.inputTokens;
  }
  return reply;
}

async function askAnthropic(url: string, model: string, stream: boolean): Promise<SdkReply> {
  const client = new Anthropic({ apiKey: 'key', baseURL: url, maxRetries: 0 });
  const request = { model, max_tokens: 100, system, messages: [...spoken] };
  if (!stream) {
    const { content, stop_reason: finish, usage } = await client.messages.create(request);
    const pieces = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
    return { pieces, finish, inputTokens: usage.input_tokens };
  }
  const reply: SdkReply = { pieces: [], finish: undefined, inputTokens: undefined };
  for await (const event of await client.messages.create({ ...request, stream: true })) {
    if (event.type === 'message_start') reply.inputTokens = event.message.usage.input_tokens;
    if (event.type === 'message_delta') reply.finish = event.delta.stop_reason;
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
      reply.pieces.push(event.delta.text);
  }
  return reply;
}

async function askBedrock(url: string, model: string, stream: boolean): Promise<SdkReply> {
  const client = new BedrockRuntimeClient({
    region: 'us-east-1',
    endpoint: url,
    credentials: { accessKeyId: 'AK', secretAccessKey: 'SK' },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  });
  try {
    return await (stream ? streamBedrock(client, model) : callBedrock(client, model));
  } finally {
    client.destroy();
  }
}

function bedrockInput(modelId: string) {
  const content = (text: string): ContentBlock[] => [{ text }];
  const messages = spoken.map(
    (turn): BedrockMessage => ({ role: turn.role, content: content(turn.content) }),
  );
  return { modelId, system: [{ text: system }], messages, inferenceConfig: { maxTokens: 100 } };
}

async function callBedrock(client: BedrockRuntimeClient, model: string): Promise<SdkReply> {
  const { output, stopReason, usage } = await client.send(new ConverseCommand(bedrockInput(model)));
  const pieces = output?.message?.content?.map((block) => block.text ?? '') ?? [];
  return { pieces, finish: stopReason, inputTokens: usage?.inputTokens };
}

async function streamBedrock(client: BedrockRuntimeClient, model: string): Promise<SdkReply> {
  const reply: SdkReply = { pieces: [], finish: undefined, inputTokens: undefined };
  const { stream } = await client.send(new ConverseStreamCommand(bedrockInput(model)));
  for await (const event of stream ?? []) {
    if (event.contentBlockDelta?.delta?.text) reply.pieces.push(event.contentBlockDelta.delta.text);
    reply.finish = event.messageStop?.stopReason ?? reply.finish;
    reply.inputTokens = event.metadata?.usage?.inputTokens ?? reply.inputTokens;
  }
  return reply;
}

type AuthClient = NonNullable<NonNullable<GoogleGenAIOptions['googleAuthOptions']>['authClient']>;

function inProject(url: string): GoogleGenAI {
  // All the SDK asks of its auth client; a real one would ask Google for a token.
  const authClient = { getRequestHeaders: async () => new Headers({ authorization: 'Bearer token' }) };
  return new GoogleGenAI({
    vertexai: true,
    project: 'some-project',
    location: 'us-central1',
    googleAuthOptions: { authClient: authClient as unknown as AuthClient },
    httpOptions: { baseUrl: url },
  });
}

function express(url: string): GoogleGenAI {
  return new GoogleGenAI({ vertexai: true, apiKey: 'key', httpOptions: { baseUrl: url } });
}

async function askVertex(client: GoogleGenAI, model: string, stream: boolean): Promise<SdkReply> {
  const contents = spoken.map(
    ({ role, content }): Content => ({
      role: role === 'user' ? 'user' : 'model',
      parts: [{ text: content }],
    }),
  );
  const request = { model, contents, config: { systemInstruction: system, maxOutputTokens: 100 } };
  const reply: SdkReply = { pieces: [], finish: undefined, inputTokens: undefined };
  const answers = stream
    ? await client.models.generateContentStream(request)
    : [await client.models.generateContent(request)];
  for await (const answer of answers) {
    if (answer.text) reply.pieces.push(answer.text);
    reply.finish = answer.candidates?.[0]?.finishReason ?? answer.promptFeedback?.blockReason ?? reply.finish;
    reply.inputTokens = answer.usageMetadata?.promptTokenCount ?? reply.inputTokens;
  }
  return reply;
}
