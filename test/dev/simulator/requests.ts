import { createHash } from 'node:crypto';
import type { CallParameters } from '../../../dev/simulator/wire-format.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import {
  type ImageType,
  type Part,
  partsOf,
  type StoredImage,
  type Turn,
} from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import { call, hello, opaque, result, said, skipped, turn, write, written } from '../../support/apis.js';

/** A request that a test can bend before it sends it. */
export interface TestRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

type Schema = Record<string, unknown>;

/** A request in our words, which every provider can be asked. */
export interface Asked {
  model?: string;
  stream?: boolean;
  turns?: readonly Turn[];
  tools?: CallParameters['tools'];
  choice?: 'required' | { name: string };
  isParallel?: false;
  /** The schema of a format. */
  format?: Schema;
  effort?: string;
}

/** The formats of requests; OpenAI has two. */
export type Wire = ProviderId | 'responses';
export const wires: readonly Wire[] = [...providerIds, 'responses'];

/** The same request in the words of each provider, as its SDK sends it; of one user turn if none is given. */
export function requestOf(wire: Wire, asked: Asked = {}): TestRequest {
  const { model = 'sim-echo', stream = false, turns = [hello], ...rest } = asked;
  const spoken = turns.filter(({ role }) => role !== 'system');
  const [system] = turns.filter(({ role }) => role === 'system').map(({ content }) => content as string);
  const body = bodies[wire]({ ...rest, turns: spoken, system });
  const { path, headers, ...named } = heads[wire](model, stream);
  return { method: 'POST', path, headers, body: givenFields({ ...named.body, ...body }) };
}

/** Sends a request to a simulator. */
export function send(url: string, request: TestRequest, signal?: AbortSignal): Promise<Response> {
  const { method, path, headers, body } = request;
  const withBody = method === 'GET' ? {} : { body: JSON.stringify(body) };
  return fetch(url + path, { method, headers, ...withBody, signal: signal ?? null });
}

/** An image as a part of a turn; `data` is base64. */
export function imageOf(mediaType: ImageType, data: string): StoredImage {
  const bytes = Buffer.from(data, 'base64');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { type: 'image', mediaType, bytes: bytes.length, sha256, data };
}

const json = { 'content-type': 'application/json' };
const signature = `AWS4-HMAC-SHA256 Credential=AK/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;

type Head = Pick<TestRequest, 'path' | 'headers'> & { body?: object };

const heads: Record<Wire, (model: string, stream: boolean) => Head> = {
  openai: (model, stream) => ({
    path: '/v1/chat/completions',
    headers: { ...json, authorization: 'Bearer key' },
    body: { model, stream },
  }),
  responses: (model, stream) => ({
    path: '/v1/responses',
    headers: { ...json, authorization: 'Bearer key' },
    body: { model, stream, store: false },
  }),
  anthropic: (model, stream) => ({
    path: '/v1/messages',
    headers: { ...json, 'x-api-key': 'key', 'anthropic-version': '2026-10-21' },
    body: { model, stream, max_tokens: 100 },
  }),
  bedrock: (model, stream) => ({
    path: `/model/${encodeURIComponent(model)}/${stream ? 'converse-stream' : 'converse'}`,
    headers: { ...json, authorization: signature, 'x-amz-date': '20260101T000000Z' },
  }),
  vertexai: (model, stream) => ({
    path: `/v1beta1/projects/p/locations/l/publishers/google/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: { ...json, authorization: 'Bearer token' },
  }),
};

type Body = Omit<Asked, 'model' | 'stream'> & { turns: readonly Turn[]; system: string | undefined };

const bodies: Record<Wire, (asked: Body) => Record<string, unknown>> = {
  openai: ({ system, turns, tools, choice, isParallel, format, effort }) => ({
    messages: [...systemMessage(system), ...written('chat', turns)],
    tools: tools?.map((tool) => ({ type: 'function', function: tool })),
    tool_choice: typeof choice === 'object' ? { type: 'function', function: choice } : choice,
    parallel_tool_calls: isParallel,
    response_format: format && {
      ...{ type: 'json_schema', json_schema: { name: 'f', strict: true, schema: format } },
    },
    reasoning_effort: effort,
  }),
  responses: ({ system, turns, tools, choice, isParallel, format, effort }) => ({
    input: [...systemMessage(system), ...written('responses', turns)],
    tools: tools?.map((tool) => ({ type: 'function', parameters: null, strict: false, ...tool })),
    tool_choice: typeof choice === 'object' ? { type: 'function', ...choice } : choice,
    parallel_tool_calls: isParallel,
    text: format && { format: { type: 'json_schema', name: 'f', strict: true, schema: format } },
    reasoning: effort && { effort },
  }),
  anthropic: ({ system, turns, tools, choice, isParallel, format, effort }) => ({
    system,
    messages: written('anthropic', turns),
    tools: tools?.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters ?? noArguments })),
    tool_choice: choice && {
      ...(typeof choice === 'object' ? { type: 'tool', ...choice } : { type: 'any' }),
      ...(isParallel === false && { disable_parallel_tool_use: true }),
    },
    output_config: (format || effort) && {
      effort,
      format: format && { type: 'json_schema', schema: format },
    },
  }),
  bedrock: ({ system, turns, tools, choice, format, effort }) => ({
    system: system === undefined ? undefined : [{ text: system }],
    messages: written('bedrock', turns),
    toolConfig: (tools || choice) && {
      tools: tools?.map(({ parameters, ...tool }) => {
        return { toolSpec: { ...tool, inputSchema: { json: parameters ?? noArguments } } };
      }),
      toolChoice: choice && (typeof choice === 'object' ? { tool: choice } : { any: {} }),
    },
    outputConfig: (format || effort) && {
      effort,
      textFormat: format && {
        type: 'json_schema',
        structure: { jsonSchema: { name: 'f', schema: JSON.stringify(format) } },
      },
    },
  }),
  vertexai: ({ system, turns, tools, choice, format, effort }) => ({
    systemInstruction: system === undefined ? undefined : { parts: [{ text: system }] },
    contents: turns.map((turn) => ({
      role: turn.role === 'assistant' ? 'model' : turn.role,
      parts: partsOf(turn).flatMap((part, index, parts) => vertexParts(part, parts[index - 1])),
    })),
    tools: tools && [
      {
        functionDeclarations: tools.map(({ parameters, ...tool }) => {
          return { ...tool, parametersJsonSchema: parameters };
        }),
      },
    ],
    toolConfig: choice && {
      functionCallingConfig: {
        mode: 'ANY',
        allowedFunctionNames: typeof choice === 'object' ? [choice.name] : undefined,
      },
    },
    generationConfig: (format || effort) && {
      ...(format && { responseMimeType: 'application/json', responseJsonSchema: format }),
      ...(effort && { thinkingConfig: { thinkingLevel: effort.toUpperCase() } }),
    },
  }),
};

const systemMessage = (system: string | undefined) =>
  system === undefined ? [] : [{ role: 'system', content: system }];

const noArguments = { type: 'object', properties: {} };

/** The parts of a part; a call has the signature before it. All calls in these tests are of the tool `weather`. */
function vertexParts(part: Part, before: Part | undefined): object[] {
  if (part.type === 'tool_result') return write('vertexai', [{ ...part, callId: 'weather' }]);
  if (part.type !== 'tool_call') return write('vertexai', [part]);
  const thoughtSignature = before?.type === 'opaque' ? before.data : skipped;
  return write('vertexai', [part]).map((own) => ({ ...own, thoughtSignature }));
}

/** The schema of an object with a city and days, as strict tools and formats have it. */
export const city = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};

/** The data of opaque parts that each provider's models could have sent; OpenAI's send none. */
const opaqueData: Partial<Record<ProviderId, string>> = {
  anthropic: JSON.stringify([{ type: 'thinking', thinking: '', signature: 's' }]),
  bedrock: JSON.stringify([{ reasoningText: { text: '', signature: 's' } }, { redactedContent: 'AA==' }]),
  vertexai: 's',
};

/** A request with all that a provider can be asked, and all kinds of parts. */
export function everything(provider: ProviderId) {
  const data = opaqueData[provider];
  // Vertex AI's calls have no ids.
  const callId = provider === 'vertexai' ? 'call_1' : 'c1';
  const thinking = data === undefined ? [] : [opaque(provider, data, null)];
  const turns = [
    turn('system', 'Be brief.'),
    turn('user', [said('See'), imageOf('image/png', 'iVBORw0KGgoAAAANSUhEUg==')]),
    turn('assistant', [said('I look.'), ...thinking, call(callId, 'weather', '{"city":"Rom","days":2}')]),
    turn('user', [result(callId, '{"sun":1}')]),
  ];
  const isStrict = provider !== 'vertexai' && { strict: true };
  return {
    turns,
    tools: [{ name: 'weather', description: 'd', parameters: city, ...isStrict }],
    choice: { name: 'weather' },
    ...(provider === 'openai' || provider === 'anthropic' ? { isParallel: false as const } : {}),
    format: city,
    effort: 'low',
  };
}
