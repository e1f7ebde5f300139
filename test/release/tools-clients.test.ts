import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { AIMessageChunk, HumanMessage } from '@langchain/core/messages';
import { tool as langchainTool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { tool as aiTool, generateObject, generateText, isStepCount, streamObject, streamText } from 'ai';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { type Part, partsOf } from '../../shared/conversation.js';
import { type Deployment, startDeployment } from '../support/deployment.js';

const apiKey = 'canary-of-the-chat-token-1618033988';
let deployment: Deployment;
let baseURL: string;
beforeAll(async () => {
  deployment = await startDeployment({ variables: { CHAT_TOKEN: apiKey } });
  baseURL = `${deployment.url}/v1`;
});
afterAll(() => deployment?.stop());

const prompt = '€ß漢🦉 Is it warm in "Köln"?';
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
  stream: boolean;
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
  talk(call: Call): Promise<Talk>;
  /** Asks for JSON that fits `weather`, in each way that the library has for it. */
  objects: Record<string, (call: Call) => Promise<unknown>>;
}

const openai = () => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: 'user' as const, content: prompt }];

const openaiClient: Client = {
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

/** `supportsStructuredOutputs`: without it the library leaves the schema out. */
const aiModel = (model: string) =>
  createOpenAICompatible({ name: 'quillgate', baseURL, apiKey, supportsStructuredOutputs: true })(model);

const aiClient: Client = {
  talk: async ({ model, stream }) => {
    const called: Talk['called'] = [];
    const execute = (name: string) => (input: unknown) => {
      called.push({ name, input });
      return answer;
    };
    const asked = {
      ...{ model: aiModel(model), prompt, maxRetries: 0, stopWhen: isStepCount(4) },
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
      const asked = { model: aiModel(model), prompt, maxRetries: 0, schema: weather };
      if (!stream) return (await generateObject(asked)).object;
      const result = streamObject(asked);
      for await (const _ of result.partialObjectStream);
      return await result.object;
    },
  },
};

const langchain = ({ model }: Pick<Call, 'model'>) =>
  new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL } });

const structured =
  (method: 'jsonSchema' | 'functionCalling') =>
  async ({ stream, model }: Call): Promise<unknown> => {
    const asking = langchain({ model }).withStructuredOutput(weather, { name: 'weather', method });
    if (!stream) return asking.invoke(prompt);
    let last: unknown;
    for await (const object of await asking.stream(prompt)) last = object;
    return last;
  };

const langchainClient: Client = {
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
      finishReasons.push((reply.response_metadata as { finish_reason?: string }).finish_reason);
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

async function joined(chunks: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let all: AIMessageChunk | undefined;
  for await (const chunk of chunks) all = all?.concat(chunk) ?? chunk;
  return all ?? new AIMessageChunk('');
}

const clients: [string, Client][] = [
  ['openai', openaiClient],
  ['the AI SDK', aiClient],
  ['LangChain', langchainClient],
];
const modes = providerIds.flatMap((provider) =>
  [false, true].map((stream): [ProviderId, boolean] => [provider, stream]),
);

const isOf = <Type extends Part['type']>(type: Type) =>
  ((part: Part) => part.type === type) as (part: Part) => part is Extract<Part, { type: Type }>;

/** The calls at the provider of a model whose name has this mark. */
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
const callsThere = (model: string) =>
  (callsOf(model).at(-1)?.turns ?? []).flatMap(partsOf).filter(isOf('tool_call'));
const resultsThere = (model: string) =>
  (callsOf(model).at(-1)?.turns ?? []).flatMap(partsOf).filter(isOf('tool_result'));

describe.each(clients)('%s', (name, { talk, objects }) => {
  const marked = (behaviour: string, stream: boolean) =>
    `${behaviour}@${name.replaceAll(' ', '-')}-${stream}`;
  const called = expect.stringMatching(/^tool[-_]calls$/);

  it.each(modes)(
    'calls a tool of its caller for a model of %s, and answers (stream: %s)',
    async (provider, stream) => {
      const model = marked('sim-tools', stream);
      const { text, finishReasons, ...talked } = await talk({ model: `${provider}/${model}`, stream });
      expect(finishReasons).toEqual([called, 'stop']);
      expect(talked.called).toEqual([{ name: 'weather', input: expect.anything() }]);
      const input = talked.called[0]?.input as Weather;
      expect(weather.parse(input)).toEqual(input);
      expect(text).not.toBe('');
      const there = callsThere(model).map((call) => [call.name, JSON.parse(call.arguments)]);
      expect(there).toEqual([['weather', input]]);
      expect(resultsThere(model).map(({ content }) => JSON.parse(content))).toEqual([answer]);
    },
  );

  it.each(modes)('calls both tools at once for a model of %s (stream: %s)', async (provider, stream) => {
    const model = marked('sim-tools-parallel', stream);
    const talked = await talk({ model: `${provider}/${model}`, stream });
    expect(talked.finishReasons).toEqual([called, 'stop']);
    expect(talked.called.map(({ name }) => name).toSorted()).toEqual(['clock', 'weather']);
    expect(callsThere(model).map((call) => call.name)).toEqual(['weather', 'clock']);
    expect(resultsThere(model)).toHaveLength(2);
  });

  it.each(modes)(
    'brings back or does without the signature of a model of %s (stream: %s)',
    async (provider, stream) => {
      const model = marked('sim-tool-signed', stream);
      const talked = await talk({ model: `${provider}/${model}`, stream });
      expect(talked.finishReasons).toEqual([called, 'stop']);
      if (provider !== 'vertexai') return;
      const sent = JSON.stringify(callsOf(model).at(-1)?.body);
      const skipped = sent.includes('skip_thought_signature_validator');
      // The other libraries drop what they do not know of a call.
      expect({ signed: sent.includes('thoughtSignature'), skipped }).toEqual({
        signed: true,
        skipped: name !== 'the AI SDK',
      });
    },
  );

  describe.each(Object.entries(objects))('%s', (way, ask) => {
    it.each(modes)('gets the object of a model of %s (stream: %s)', async (provider, stream) => {
      const model = `${provider}/${way.endsWith('call') ? 'sim-tools' : 'sim-echo'}`;
      const object = await ask({ model, stream });
      expect(weather.parse(object)).toEqual(object);
    });
  });
});
