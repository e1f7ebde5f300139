import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { APICallError, generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { blogToken, type Deployment, startDeployment } from '../support/deployment.js';

const apiKey = 'canary-of-the-chat-token-1618033988';
let deployment: Deployment;
let baseURL: string;
beforeAll(async () => {
  deployment = await startDeployment({ variables: { CHAT_TOKEN: apiKey } });
  baseURL = `${deployment.url}/v1`;
});
afterAll(() => deployment.stop());

interface Call {
  model: string;
  prompt: string;
  signal?: AbortSignal | undefined;
  /** How often a client may try again; none unless set. */
  maxRetries?: number;
  /** Called for each request. */
  onRequest?: () => void;
  apiKey?: string;
}

interface Reply {
  text: string;
  /** Tokens read and written. */
  usage: (number | undefined)[];
  finishReason: string | undefined;
}

/** A client library, as its documentation shows it. */
interface Client {
  complete(call: Call): Promise<Reply>;
  stream(call: Call & { onText?: (text: string) => void }): Promise<Reply>;
}

const fetchOf = ({ onRequest }: Partial<Call>) => ({
  fetch: (...request: Parameters<typeof fetch>) => {
    onRequest?.();
    return fetch(...request);
  },
});

const openai = (call: Partial<Call> = {}): OpenAI =>
  new OpenAI({ baseURL, apiKey, maxRetries: 0, ...call, ...fetchOf(call) });

const openaiClient: Client = {
  complete: async (call) => {
    const { model, prompt, signal } = call;
    const messages = [{ role: 'user' as const, content: prompt }];
    const { choices, usage } = await openai(call).chat.completions.create({ model, messages }, { signal });
    const [choice] = choices;
    return {
      text: choice?.message.content ?? '',
      usage: [usage?.prompt_tokens, usage?.completion_tokens],
      finishReason: choice?.finish_reason,
    };
  },
  stream: async ({ onText, ...call }) => {
    const { model, prompt, signal } = call;
    const reply: Reply = { text: '', usage: [], finishReason: undefined };
    const stream = await openai(call).chat.completions.create(
      {
        ...{ model, messages: [{ role: 'user', content: prompt }] },
        ...{ stream: true, stream_options: { include_usage: true } },
      },
      { signal },
    );
    for await (const { choices, usage } of stream) {
      const [choice] = choices;
      reply.text += choice?.delta.content ?? '';
      reply.finishReason = choice?.finish_reason ?? reply.finishReason;
      if (usage) reply.usage = [usage.prompt_tokens, usage.completion_tokens];
      if (reply.text) onText?.(reply.text);
    }
    signal?.throwIfAborted();
    return reply;
  },
};

const aiOptions = (call: Call) => {
  const { model, prompt, signal, maxRetries = 0 } = call;
  const provider = createOpenAICompatible({
    ...{ name: 'quillgate', baseURL, apiKey: call.apiKey ?? apiKey, includeUsage: true },
    ...fetchOf(call),
  });
  return { model: provider(model), prompt, maxRetries, ...(signal && { abortSignal: signal }) };
};

const aiClient: Client = {
  complete: async (call) => {
    const { text, usage, finishReason } = await generateText(aiOptions(call));
    return { text, usage: [usage.inputTokens, usage.outputTokens], finishReason };
  },
  stream: async ({ onText, ...call }) => {
    let failure: unknown;
    const onError = ({ error }: { error: unknown }) => {
      failure = error;
    };
    const result = streamText({ ...aiOptions(call), onError });
    let text = '';
    for await (const delta of result.textStream) {
      text += delta;
      onText?.(text);
    }
    if (failure) throw failure;
    call.signal?.throwIfAborted();
    const usage = await result.usage;
    return { text, usage: [usage.inputTokens, usage.outputTokens], finishReason: await result.finishReason };
  },
};

const langchain = (call: Call) =>
  new ChatOpenAI({
    ...{ model: call.model, apiKey: call.apiKey ?? apiKey, maxRetries: call.maxRetries ?? 0 },
    configuration: { baseURL, ...fetchOf(call) },
  });

/** The text of a message or of a part. */
function read({ text, usage_metadata, response_metadata }: LangChainMessage): Reply {
  const usage = usage_metadata as { input_tokens?: number; output_tokens?: number } | undefined;
  const { finish_reason: finishReason } = response_metadata as { finish_reason?: string };
  return { text, usage: [usage?.input_tokens, usage?.output_tokens], finishReason };
}

interface LangChainMessage {
  text: string;
  usage_metadata?: unknown;
  response_metadata: object;
}

const langchainClient: Client = {
  complete: async (call) => {
    const { prompt, signal } = call;
    return read(await langchain(call).invoke(prompt, signal && { signal }));
  },
  stream: async ({ onText, ...call }) => {
    const { prompt, signal } = call;
    const reply: Reply = { text: '', usage: [], finishReason: undefined };
    for await (const chunk of await langchain(call).stream(prompt, signal && { signal })) {
      const { text, usage, finishReason } = read(chunk);
      reply.text += text;
      if (usage[0] !== undefined) reply.usage = usage;
      reply.finishReason = finishReason ?? reply.finishReason;
      if (reply.text) onText?.(reply.text);
    }
    return reply;
  },
};

const clients: [string, Client][] = [
  ['openai', openaiClient],
  ['the AI SDK', aiClient],
  ['LangChain', langchainClient],
];
const prompt = '€ß漢🦉 Hello\n"world"';
const errorOf = (work: Promise<unknown>): Promise<Error & { status?: number; statusCode?: number }> =>
  work.then(
    () => expect.unreachable('nothing was thrown'),
    (error) => error,
  );

describe.each(clients)('%s', (name, client) => {
  it.each(providerIds)('gets replies of %s, whole and as they are written', async (provider) => {
    const call = { model: `${provider}/sim-verbatim`, prompt };
    const [whole, streamed] = await Promise.all([client.complete(call), client.stream(call)]);
    for (const reply of [whole, streamed])
      expect(reply).toEqual({
        text: prompt,
        usage: [expect.any(Number), expect.any(Number)],
        finishReason: 'stop',
      });
  });

  it('cancels a call at the provider, streamed or not', async () => {
    const tag = name.replaceAll(' ', '-');
    const aborting = new AbortController();
    const hanging = `sim-hang@${tag}`;
    const whole = errorOf(client.complete({ model: `openai/${hanging}`, prompt, signal: aborting.signal }));
    const hung = await deployment.simulator.waitForCall(({ model }) => model === hanging);
    const long = `sim-stream-1000-20@${tag}`;
    const shown = Promise.withResolvers<void>();
    const streamed = errorOf(
      client.stream({
        ...{ model: `openai/${long}`, prompt, signal: aborting.signal },
        onText: () => shown.resolve(),
      }),
    );
    await shown.promise;
    aborting.abort();
    await Promise.all([whole, streamed]);
    const streaming = await deployment.simulator.waitForCall(({ model }) => model === long);
    await Promise.all([hung.closed, streaming.closed]);
    expect([hung.clientClosedFirst, streaming.clientClosedFirst]).toEqual([true, true]);
  });

  it('throws what a stream fails with after its beginning', async () => {
    let shown = '';
    const onText = (text: string) => {
      shown = text;
    };
    const error = await errorOf(client.stream({ model: 'anthropic/sim-cut-3', prompt, onText }));
    expect(error).toBeInstanceOf(Error);
    expect(shown).toMatch(/^1/);
  });

  it('tries again only where it is told that this may help', async () => {
    let requests = 0;
    const onRequest = () => {
      requests += 1;
    };
    const call = { prompt, maxRetries: 1, onRequest };
    await errorOf(client.complete({ ...call, model: 'vertexai/sim-status-400' }));
    expect(requests).toBe(1);
    requests = 0;
    // The worker tries once more by itself.
    const model = `openai/sim-fail-2-500-${name.replaceAll(' ', '-')}`;
    expect(await client.complete({ ...call, model })).toMatchObject({ finishReason: 'stop' });
    expect(requests).toBe(2);
  });

  it.each<[string, number, Partial<Call>]>([
    ['a key that is none', 401, { apiKey: 'wrong' }],
    ['a model that its provider does not know', 404, { model: 'openai/sim-status-404' }],
    ['a rate limit of the provider', 429, { model: 'bedrock/sim-retry-after-600' }],
    ['a failure of the provider', 502, { model: 'openai/sim-garbage' }],
  ])('throws an error with its status for %s', async (_, status, call) => {
    // A model of its own: one that is held back for less than the deadline would be waited for.
    const model = `${call.model ?? 'openai/sim-echo'}@${name.replaceAll(' ', '-')}`;
    const error = await errorOf(client.complete({ prompt, ...call, model }));
    expect(error.status ?? error.statusCode).toBe(status);
    if (client === aiClient) expect(APICallError.isInstance(error)).toBe(true);
    else expect(error).toBeInstanceOf(OpenAI.APIError);
  });
});

describe('the openai package', () => {
  const messages = [{ role: 'user' as const, content: prompt }];
  const model = 'openai/sim-echo';
  const create = (fields: object, headers: Record<string, string> = {}) =>
    openai().chat.completions.create({ model, messages, ...fields }, { headers });

  it('maps errors to its classes, with their code and param', async () => {
    const key = { 'Idempotency-Key': 'of-the-clients' };
    await create({}, key);
    type Facts = { code: string; param?: string; status?: number };
    const cases: [object, new (...facts: never[]) => Error, Facts, Record<string, string>?][] = [
      [{ n: 2 }, OpenAI.BadRequestError, { code: 'invalid_request', param: 'n' }],
      [{ model: 'openai/sim-blocked' }, OpenAI.BadRequestError, { code: 'content_filter' }],
      [{ model: 'x/y' }, OpenAI.NotFoundError, { code: 'model_not_found', param: 'model' }],
      [{ seed: 5 }, OpenAI.UnprocessableEntityError, { code: 'idempotency_key_reused' }, key],
      [{ model: 'openai/sim-retry-after-600' }, OpenAI.RateLimitError, { code: 'provider_rate_limited' }],
      [{ model: 'openai/sim-empty' }, OpenAI.InternalServerError, { status: 502, code: 'provider_error' }],
      [{}, OpenAI.AuthenticationError, { code: 'unauthorized' }, { Authorization: 'Bearer x' }],
      [
        {},
        OpenAI.PermissionDeniedError,
        { code: 'insufficient_scope' },
        { Authorization: `Bearer ${blogToken}` },
      ],
    ];
    for (const [fields, type, facts, headers] of cases) {
      const error = await errorOf(create(fields, headers));
      expect(error).toBeInstanceOf(type);
      expect(error).toMatchObject({ requestID: expect.stringMatching(/^[0-9a-f-]{36}$/), ...facts });
    }
  });

  it('does not try again a server error of which it is told that this is of no use', async () => {
    let requests = 0;
    const onRequest = () => {
      requests += 1;
    };
    // Our own key is wrong.
    const work = openai({ maxRetries: 2, onRequest }).chat.completions.create({
      ...{ model: 'openai/sim-status-401', messages },
    });
    expect(await errorOf(work)).toMatchObject({ status: 502, code: 'provider_rejected' });
    expect(requests).toBe(1);
  });

  it('does not pay a call that timed out three times (finding M1)', async () => {
    const model = 'sim-hang@timed-out';
    const work = openai({ maxRetries: 2 }).chat.completions.create(
      { model: `openai/${model}`, messages },
      { headers: { Prefer: 'wait=1' } },
    );
    expect(await errorOf(work)).toMatchObject({ status: 504, code: 'timeout' });
    expect(deployment.simulator.calls.list({ model })).toHaveLength(1);
  });

  it('lists and gets the models', async () => {
    const listed: string[] = [];
    for await (const { id } of openai().models.list()) listed.push(id);
    expect(listed).toEqual(providerIds.map((id) => `${id}/sim-echo`));
    const [id = ''] = listed;
    expect(await openai().models.retrieve(id)).toMatchObject({ id, object: 'model', owned_by: 'openai' });
    expect(await errorOf(openai().models.retrieve('openai/none'))).toBeInstanceOf(OpenAI.NotFoundError);
  });
});
