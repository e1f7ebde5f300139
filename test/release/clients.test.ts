import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ContextOverflowError } from '@langchain/core/errors';
import { AIMessageChunk, HumanMessage } from '@langchain/core/messages';
import { tool as langchainTool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import {
  APICallError,
  tool as aiTool,
  generateObject,
  generateText,
  isStepCount,
  streamObject,
  streamText,
} from 'ai';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';

const apiKey = 'canary-of-the-chat-token-1618033988';
const deployment = await startDeployment({ variables: profiles.plain });
afterAll(deployment.stop);
let baseURL = `${deployment.url}/v1`;

const prompt = '€ß漢🦉 Is it warm\nin "Köln"?';
const description = 'The weather of a place.';
/** With what schemas mostly have; `z.int` has bounds, which Claude and Gemini are asked without. */
const weather = z.object({
  city: z.string().describe('Its name.'),
  unit: z.enum(['celsius', 'kelvin']),
  days: z.array(z.object({ number: z.int(), warm: z.boolean() })),
  note: z.string().nullable(),
});
type Weather = z.output<typeof weather>;
const clock = z.object({ zone: z.string() });
const answer = { degrees: 21, text: 'wärmer' };

interface Call {
  /** With its provider. */
  model: string;
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

/** A conversation in which each of the two tools may be called, until a reply calls none. */
interface Talk {
  /** The arguments of the tools' calls, in their order. */
  called: { name: string; input: unknown }[];
  text: string;
  /** Of each reply, in the client's words. */
  finishReasons: (string | undefined)[];
}

/** A client library, as its documentation shows it. */
interface Client {
  complete(call: Call): Promise<Reply>;
  stream(call: Call & { onText?: (text: string) => void }): Promise<Reply>;
  talk(call: Call & { stream: boolean }): Promise<Talk>;
  /** Asks for JSON that fits `weather`, in each way that the library has for it. */
  objects: Record<string, (call: Call & { stream: boolean }) => Promise<unknown>>;
}

const messages = [{ role: 'user' as const, content: prompt }];
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
    const { model, signal } = call;
    const { choices, usage } = await openai(call).chat.completions.create({ model, messages }, { signal });
    const [choice] = choices;
    return {
      text: choice?.message.content ?? '',
      usage: [usage?.prompt_tokens, usage?.completion_tokens],
      finishReason: choice?.finish_reason,
    };
  },
  stream: async ({ onText, ...call }) => {
    const { model, signal } = call;
    const reply: Reply = { text: '', usage: [], finishReason: undefined };
    const stream = await openai(call).chat.completions.create(
      { model, messages, stream: true, stream_options: { include_usage: true } },
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
  talk: async ({ model, stream }) => {
    const called: Talk['called'] = [];
    const runnable = (name: string, parameters: typeof weather | typeof clock) =>
      zodFunction({
        ...{ name, description, parameters },
        function: (input: object) => {
          called.push({ name, input });
          return answer;
        },
      });
    const asked = { model, messages, tools: [runnable('weather', weather), runnable('clock', clock)] };
    const { completions } = openai().chat;
    const runner = stream
      ? completions.runTools({ ...asked, stream: true })
      : completions.runTools({ ...asked });
    const text = (await runner.finalContent()) ?? '';
    const finishReasons = runner.allChatCompletions().map(({ choices }) => choices[0]?.finish_reason);
    return { called, text, finishReasons };
  },
  objects: {
    'chat.completions.parse and .stream': async ({ model, stream }) => {
      const asked = { model, messages, response_format: zodResponseFormat(weather, 'weather') };
      const { completions } = openai().chat;
      const { choices } = await (stream
        ? completions.stream({ ...asked, stream: true }).finalChatCompletion()
        : completions.parse(asked));
      return choices[0]?.message.parsed;
    },
  },
};

const aiOptions = (call: Call) => {
  const { model, signal, maxRetries = 0 } = call;
  const provider = createOpenAICompatible({
    ...{ name: 'quillgate', baseURL, apiKey: call.apiKey ?? apiKey, includeUsage: true },
    // Without it the library leaves schemas out.
    supportsStructuredOutputs: true,
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
  talk: async ({ model, stream }) => {
    const called: Talk['called'] = [];
    const execute = (name: string) => (input: unknown) => {
      called.push({ name, input });
      return answer;
    };
    const asked = {
      ...{ ...aiOptions({ model }), stopWhen: isStepCount(4) },
      tools: {
        weather: aiTool({ description, inputSchema: weather, execute: execute('weather') }),
        clock: aiTool({ description, inputSchema: clock, execute: execute('clock') }),
      },
    };
    const result = stream ? streamText(asked) : await generateText(asked);
    const steps = await result.steps;
    return { called, text: await result.text, finishReasons: steps.map(({ finishReason }) => finishReason) };
  },
  objects: {
    'generateObject and streamObject': async ({ model, stream }) => {
      const asked = { ...aiOptions({ model }), schema: weather };
      if (!stream) return (await generateObject(asked)).object;
      const result = streamObject(asked);
      for await (const _ of result.partialObjectStream);
      return await result.object;
    },
  },
};

const langchain = (call: Call) =>
  new ChatOpenAI({
    ...{ model: call.model, apiKey: call.apiKey ?? apiKey, maxRetries: call.maxRetries ?? 0 },
    configuration: { baseURL, ...fetchOf(call) },
  });

/** The text of a message or of a part. */
function read({ text, usage_metadata, response_metadata }: AIMessageChunk): Reply {
  const usage = usage_metadata as { input_tokens?: number; output_tokens?: number } | undefined;
  const { finish_reason: finishReason } = response_metadata as { finish_reason?: string };
  return { text, usage: [usage?.input_tokens, usage?.output_tokens], finishReason };
}

const structured =
  (method: 'jsonSchema' | 'functionCalling') =>
  async ({ stream, model }: Call & { stream: boolean }): Promise<unknown> => {
    const asking = langchain({ model }).withStructuredOutput(weather, { name: 'weather', method });
    if (!stream) return asking.invoke(prompt);
    let last: unknown;
    for await (const object of await asking.stream(prompt)) last = object;
    return last;
  };

const langchainClient: Client = {
  complete: async (call) => {
    const { signal } = call;
    return read(await langchain(call).invoke(prompt, signal && { signal }));
  },
  stream: async ({ onText, ...call }) => {
    const { signal } = call;
    return read(await joined(await langchain(call).stream(prompt, signal && { signal }), onText));
  },
  talk: async ({ model, stream }) => {
    const called: Talk['called'] = [];
    const toolOf = (name: string, schema: typeof weather | typeof clock) =>
      langchainTool(
        (input: unknown) => {
          called.push({ name, input });
          return JSON.stringify(answer);
        },
        { name, description, schema },
      );
    const tools = { weather: toolOf('weather', weather), clock: toolOf('clock', clock) };
    const bound = langchain({ model }).bindTools(Object.values(tools));
    const finishReasons: Talk['finishReasons'] = [];
    const said: Parameters<typeof bound.invoke>[0] & unknown[] = [new HumanMessage(prompt)];
    for (;;) {
      const reply = stream ? await joined(await bound.stream(said)) : await bound.invoke(said);
      finishReasons.push(read(reply).finishReason);
      if (!reply.tool_calls?.length || finishReasons.length === 4)
        return { called, text: reply.text, finishReasons };
      said.push(reply);
      for (const toolCall of reply.tool_calls)
        said.push(
          await tools[toolCall.name as keyof typeof tools].invoke({ ...toolCall, type: 'tool_call' }),
        );
    }
  },
  objects: {
    'withStructuredOutput by a schema': structured('jsonSchema'),
    'withStructuredOutput by a call': structured('functionCalling'),
  },
};

async function joined(
  chunks: AsyncIterable<AIMessageChunk>,
  onText?: (text: string) => void,
): Promise<AIMessageChunk> {
  let all = new AIMessageChunk('');
  for await (const chunk of chunks) {
    all = all.concat(chunk);
    if (all.text) onText?.(all.text);
  }
  return all;
}

const clients: [string, Client][] = [
  ['openai', openaiClient],
  ['the AI SDK', aiClient],
  ['LangChain', langchainClient],
];
const modes = providerIds.flatMap((provider) =>
  [false, true].map((stream): [ProviderId, boolean] => [provider, stream]),
);

/** The field of a signature that comes back, in a request of each provider. */
const signatures: Record<ProviderId, string> = {
  openai: '"type":"reasoning"',
  anthropic: '"signature"',
  bedrock: '"reasoningContent"',
  vertexai: '"thoughtSignature"',
};

const errorOf = (work: Promise<unknown>): Promise<Error & { status?: number; statusCode?: number }> =>
  work.then(
    () => expect.unreachable('nothing was thrown'),
    (error) => error,
  );

describe.each(clients)('%s', (name, { complete, stream, talk, objects }) => {
  const tag = name.replaceAll(' ', '-');

  it.each(providerIds)('asks %s → gets the reply, whole and as it is written', async (provider) => {
    const call = { model: `${provider}/sim-verbatim` };
    const expected = { text: prompt, usage: [expect.any(Number), expect.any(Number)], finishReason: 'stop' };
    expect(await Promise.all([complete(call), stream(call)])).toEqual([expected, expected]);
  });

  it('gives up → its call at the provider is cancelled, streamed or not', async () => {
    const aborting = new AbortController();
    const [hanging, begun] = [`sim-gate-0@${tag}`, `sim-gate-1@${tag}`];
    const whole = errorOf(complete({ model: `openai/${hanging}`, signal: aborting.signal }));
    const hung = await deployment.simulator.waitForCall(({ model }) => model === hanging);
    const shown = Promise.withResolvers<void>();
    const onText = () => shown.resolve();
    const streamed = errorOf(stream({ model: `openai/${begun}`, signal: aborting.signal, onText }));
    await shown.promise;
    aborting.abort();
    await Promise.all([whole, streamed]);
    const streaming = await deployment.simulator.waitForCall(({ model }) => model === begun);
    await Promise.all([hung.closed, streaming.closed]);
    expect([hung.clientClosedFirst, streaming.clientClosedFirst]).toEqual([true, true]);
  });

  it('reads a stream that fails after its beginning → throws, and has shown the beginning', async () => {
    const onText = vi.fn();
    expect(await errorOf(stream({ model: 'anthropic/sim-cut-3', onText }))).toBeInstanceOf(Error);
    expect(onText).toHaveBeenLastCalledWith(expect.stringMatching(/^1/));
  });

  it('may try again → does where it is told that this may help, and only there', async () => {
    const onRequest = vi.fn();
    const call = { maxRetries: 1, onRequest };
    await errorOf(complete({ ...call, model: 'vertexai/sim-status-400' }));
    expect(onRequest).toHaveBeenCalledTimes(1);
    // The worker tries once more by itself.
    const reply = await complete({ ...call, model: `openai/sim-fail-2-500-${tag}` });
    expect(reply).toMatchObject({ finishReason: 'stop' });
    expect(onRequest).toHaveBeenCalledTimes(3);
  });

  it.each<[string, number, Partial<Call>]>([
    ['a key that is none', 401, { apiKey: 'wrong' }],
    ['a model that its provider does not know', 404, { model: 'openai/sim-status-404' }],
    ['a rate limit of the provider', 429, { model: 'bedrock/sim-retry-after-600' }],
    ['a failure of the provider', 502, { model: 'openai/sim-garbage' }],
  ])('meets %s → throws an error with the status %i', async (_, status, call) => {
    // A model of its own: one that is held back for less than the deadline would be waited for.
    const model = `${call.model ?? 'openai/sim-echo'}@${tag}`;
    const error = await errorOf(complete({ ...call, model }));
    expect(error.status ?? error.statusCode).toBe(status);
    if (name === 'the AI SDK') expect(APICallError.isInstance(error)).toBe(true);
    else expect(error).toBeInstanceOf(OpenAI.APIError);
  });

  it.each([
    ...['anthropic', 'vertexai'].map((id) => [id, 'is 1 tokens']),
    ...['openai', 'bedrock'].map((id) => [id, 'is exceeded']),
  ])('has a conversation that is too long for %s → throws an error that says so', async (provider, limit) => {
    const error = await errorOf(complete({ model: `${provider}/sim-context-1@${tag}` }));
    expect(error.message).toContain(`maximum context length ${limit} (context_length_exceeded)`);
    if (name === 'LangChain') expect(ContextOverflowError.isInstance(error)).toBe(true);
  });

  it.each(modes)(
    'gets a signed call of %s → goes on, with the signature or without it (stream: %s)',
    async (provider, streamed) => {
      const model = `sim-tool-signed@${tag}-${streamed}`;
      expect((await talk({ model: `${provider}/${model}`, stream: streamed })).finishReasons).toHaveLength(2);
      const calls = deployment.simulator.calls.list({ model }).filter((call) => call.provider === provider);
      const sent = JSON.stringify(calls.at(-1)?.body);
      // The AI SDK keeps Gemini's field, and nobody another's. Gemini has a value for a call without its signature.
      const isOfGemini = provider === 'vertexai';
      expect(sent.includes(signatures[provider])).toBe(isOfGemini);
      const isLost = isOfGemini && name !== 'the AI SDK';
      expect(sent.includes('skip_thought_signature_validator')).toBe(isLost);
    },
  );

  describe.each(modes)('with tools, at a model of %s (stream: %s)', (provider, streamed) => {
    const called = expect.stringMatching(/^tool[-_]calls$/);

    it('is called for both at once → runs them, and gets the answer to their results', async () => {
      const talked = await talk({ model: `${provider}/sim-tools-parallel`, stream: streamed });
      expect(talked.finishReasons).toEqual([called, 'stop']);
      expect(talked.called.map((call) => call.name).toSorted()).toEqual(['clock', 'weather']);
      const input = talked.called.find((call) => call.name === 'weather')?.input as Weather;
      expect(weather.parse(input)).toEqual(input);
      // The simulator says what it has read.
      expect(talked.text.split(answer.text)).toHaveLength(3);
    });

    it.each(Object.entries(objects))('asks for JSON by %s → gets an object that fits', async (way, ask) => {
      const model = `${provider}/${way.endsWith('call') ? 'sim-tools' : 'sim-echo'}`;
      const object = await ask({ model, stream: streamed });
      expect(weather.parse(object)).toEqual(object);
    });
  });
});

describe('OpenAI, asked by Chat Completions', () => {
  let other: Deployment;
  beforeAll(async () => {
    other = await startDeployment({ variables: { ...profiles.plain, OPENAI_WIRE: 'chat' } });
    baseURL = `${other.url}/v1`;
  });
  afterAll(async () => {
    baseURL = `${deployment.url}/v1`;
    await other?.stop();
  });

  it.each(clients)('%s → gets replies, calls tools and reads JSON', async (_, client) => {
    for (const stream of [false, true]) {
      const ask = stream ? client.stream : client.complete;
      const reply = await ask({ model: 'openai/sim-verbatim' });
      expect(reply).toMatchObject({ text: prompt, finishReason: 'stop' });
      const talked = await client.talk({ model: 'openai/sim-tools-parallel', stream });
      expect(talked.called.map(({ name }) => name).toSorted()).toEqual(['clock', 'weather']);
      expect(talked.text.split(answer.text)).toHaveLength(3);
      for (const [way, read] of Object.entries(client.objects)) {
        const model = `openai/${way.endsWith('call') ? 'sim-tools' : 'sim-echo'}`;
        expect(weather.safeParse(await read({ model, stream })).error).toBeUndefined();
      }
    }
    const paths = new Set(other.simulator.calls.list({}).map(({ facts }) => facts.path));
    expect([...paths]).toEqual(['/v1/chat/completions']);
  });
});

describe('the openai package', () => {
  it('is told that trying again is of no use → does not', async () => {
    const onRequest = vi.fn();
    // Our own key is wrong.
    const work = openai({ maxRetries: 2, onRequest }).chat.completions.create({
      ...{ model: 'openai/sim-status-401', messages },
    });
    expect(await errorOf(work)).toMatchObject({ status: 502, code: 'provider_rejected' });
    expect(onRequest).toHaveBeenCalledTimes(1);
  });

  it('meets the deadline of a call that was made → does not make it again', async () => {
    const model = 'sim-hang@timed-out';
    const work = openai({ maxRetries: 2 }).chat.completions.create(
      { model: `openai/${model}`, messages },
      { headers: { Prefer: 'wait=1' } },
    );
    expect(await errorOf(work)).toMatchObject({ status: 504, code: 'timeout' });
    expect(deployment.simulator.calls.list({ model })).toHaveLength(1);
  });

  it('asks for the models → gets the list, and each of them', async () => {
    const listed: string[] = [];
    for await (const { id } of openai().models.list()) listed.push(id);
    expect(listed).toEqual(providerIds.map((id) => `${id}/sim-echo`));
    const [id = ''] = listed;
    expect(await openai().models.retrieve(id)).toMatchObject({ id, object: 'model', owned_by: 'openai' });
    expect(await errorOf(openai().models.retrieve('openai/none'))).toBeInstanceOf(OpenAI.NotFoundError);
  });
});

/** Runs a program of a page for this model, and gives the text that it prints. */
async function runProgram(model: string, ...args: string[]): Promise<string> {
  const own = { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, MODEL: model };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...own } });
  return stdout;
}

describe('a program of docs/clients.md whose packages are here', () => {
  const programs = [...readFileSync('docs/clients.md', 'utf8').matchAll(/```js\n([\s\S]*?)```/g)]
    .map(([, program = '']) => program)
    .filter((program) =>
      [...program.matchAll(/from '(@[^/']+\/[^/']+|[^/']+)/g)].every(([, name]) =>
        existsSync(`node_modules/${name}`),
      ),
    )
    .map((program) => ({ program, first: program.split('\n')[0] }));

  it('-> is more than one', () => expect(programs.length).toBeGreaterThan(2));

  it.each(programs)('as it is printed -> gets a reply: $first', async ({ program }) => {
    const reply = await runProgram('anthropic/sim-echo', '--input-type=module', '--eval', program);
    expect(reply).toContain('Simulated anthropic reply');
  });
});

describe('a program of docs/tools.md', () => {
  const run = (program: string, model: string, ...args: string[]) =>
    runProgram(model, `test/tools-page/${program}`, ...args);

  it.each(['openai.mjs', 'ai-sdk.mjs', 'langchain.mjs'])(
    'calls a tool → gets a reply that knows its result: %s',
    async (program) => {
      expect(await run(program, 'anthropic/sim-tools')).toContain('It is sunny in ');
    },
  );

  it.each(providerIds)('asks %s for JSON → reads it by its schema', async (provider) => {
    expect(await run('schema.mjs', `${provider}/sim-echo`)).toMatch(/^(Germany|France)\n$/);
  });

  it('sends an image → gets a reply to its text', async () => {
    const reply = await run('image.mjs', 'bedrock/sim-echo', 'docs/images/pool.png');
    expect(reply).toContain('What is in this picture?');
  });
});
