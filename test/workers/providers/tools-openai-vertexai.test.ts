import { json } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Part, Turn } from '../../../shared/conversation.js';
import type { ModelParameters } from '../../../shared/protocol/model-parameters.js';
import { callsOf, piecesOf, textOfTape } from '../../../shared/protocol/parts.js';
import { refusalOf } from '../../../workers/providers/error-classification.js';
import type { ProviderReply } from '../../../workers/providers/provider.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

type Body = Record<string, unknown>;

/** The next answer of the provider, and the last request to it. */
const played: { whole: Body; chunks: Body[]; body: Body } = { whole: {}, chunks: [], body: {} };

const server = await serve(async (request, response) => {
  played.body = (await json(request)) as Body;
  const streams = played.body.stream === true || request.url?.includes('alt=sse');
  response.setHeader('Content-Type', streams ? 'text/event-stream' : 'application/json');
  const events = played.chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);
  response.end(streams ? events.join('') : JSON.stringify(played.whole));
});
afterAll(() => server.close());

const load = async (id: 'openai' | 'vertexai') => {
  const provider = await providerSetups.find((setup) => setup.id === id)?.load(server.url);
  if (provider === undefined) throw new Error('there is no such setup');
  afterAll(() => provider.close());
  return provider;
};
const providers = { openai: await load('openai'), vertexai: await load('vertexai') };

const schema = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 1 } },
  required: ['city'],
};
const weather = { name: 'weather', description: 'Says how it is.', parameters: schema, strict: true };
const clock = { name: 'clock' };
const tools = [weather, clock];

const question: Turn = { role: 'user', content: 'Hello' };
const call = (id: string, name = 'weather', json = '{"city":"Bern"}') =>
  ({ type: 'tool_call', id, name, arguments: json }) as const;
const result = (callId: string, content: string, isError?: boolean) =>
  ({ type: 'tool_result', callId, content, isError }) as const;
const said = (text: string) => ({ type: 'text', text }) as const;
const png = {
  type: 'image',
  mediaType: 'image/png',
  sha256: '0'.repeat(64),
  bytes: 3,
  data: 'AAAA',
} as const;
const opaque = (provider: 'vertexai' | 'anthropic', data: string) =>
  ({ type: 'opaque', provider, data }) as const;

interface Asked {
  turns?: Turn[];
  parameters?: ModelParameters;
  /** The fields of the request with these names; undefined means that it has none. */
  sends: Body;
}

const answersText: Record<keyof typeof providers, Pick<typeof played, 'whole' | 'chunks'>> = {
  openai: {
    whole: { choices: [{ message: { content: '{}' }, finish_reason: 'stop' }] },
    chunks: [{ choices: [{ delta: { content: '{}' }, finish_reason: 'stop' }] }],
  },
  vertexai: {
    whole: { candidates: [{ content: { parts: [{ text: '{}' }] }, finishReason: 'STOP' }] },
    chunks: [{ candidates: [{ content: { parts: [{ text: '{}' }] }, finishReason: 'STOP' }] }],
  },
};

/** Makes the call, and gives those fields of the request that are expected. */
async function send(id: keyof typeof providers, stream: boolean, { sends, ...asked }: Asked) {
  Object.assign(played, answersText[id]);
  await ask(providers[id], { model: 'm', stream, ...asked });
  return Object.fromEntries(Object.keys(sends).map((name) => [name, played.body[name]]));
}

const longId = 'i'.repeat(41);
const shortId = expect.stringMatching(/^c_[\w-]{22}$/);
const wireCall = (id: unknown, name = 'weather', json = '{"city":"Bern"}') => ({
  ...{ id, type: 'function' },
  function: { name, arguments: json },
});

const openaiRequests: Record<string, Asked> = {
  'tools as they are': {
    parameters: { tools },
    sends: {
      tools: [
        { type: 'function', function: weather },
        { type: 'function', function: clock },
      ],
      tool_choice: undefined,
      parallel_tool_calls: undefined,
    },
  },
  'one call at a time, and one at least': {
    parameters: { tools, toolChoice: 'required', parallelToolCalls: false },
    sends: { tool_choice: 'required', parallel_tool_calls: false },
  },
  'the choice of a tool': {
    parameters: { tools, toolChoice: { name: 'clock' } },
    sends: { tool_choice: { type: 'function', function: { name: 'clock' } } },
  },
  'the choice of none': { parameters: { tools, toolChoice: 'none' }, sends: { tool_choice: 'none' } },
  'no choice without tools': {
    parameters: { toolChoice: 'none', parallelToolCalls: true },
    sends: { tool_choice: undefined, parallel_tool_calls: undefined, tools: undefined },
  },
  'JSON by a schema': {
    parameters: { format: { type: 'json_schema', name: 'n', description: 'd', schema, strict: true } },
    sends: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'n', description: 'd', schema, strict: true },
      },
    },
  },
  'JSON without a schema': {
    parameters: { format: { type: 'json_object' } },
    sends: { response_format: { type: 'json_object' } },
  },
  'effort and verbosity': {
    parameters: { reasoningEffort: 'xhigh', verbosity: 'low' },
    sends: { reasoning_effort: 'xhigh', verbosity: 'low' },
  },
  'calls, and each result in a message of its own before the rest': {
    turns: [
      question,
      { role: 'assistant', content: [said('Look: '), opaque('vertexai', 'AAAA'), call('a'), call(longId)] },
      { role: 'user', content: [result('a', 'sun'), result(longId, '', true), said(''), said('And?')] },
    ],
    sends: {
      messages: [
        question,
        { role: 'assistant', content: 'Look: ', tool_calls: [wireCall('a'), wireCall(shortId)] },
        { role: 'tool', tool_call_id: 'a', content: 'sun' },
        { role: 'tool', tool_call_id: shortId, content: '' },
        { role: 'user', content: [{ type: 'text', text: 'And?' }] },
      ],
    },
  },
  'null for a message that has only calls, and no message for nothing': {
    turns: [
      question,
      { role: 'assistant', content: [call('a')] },
      { role: 'user', content: [result('a', '1')] },
    ],
    sends: {
      messages: [
        question,
        { role: 'assistant', content: null, tool_calls: [wireCall('a')] },
        { role: 'tool', tool_call_id: 'a', content: '1' },
      ],
    },
  },
  'images, in their place between texts': {
    turns: [
      { role: 'user', content: [said('a'), png, { type: 'image', url: 'https://example.org/i' }, said('b')] },
    ],
    sends: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
            { type: 'image_url', image_url: { url: 'https://example.org/i' } },
            { type: 'text', text: 'b' },
          ],
        },
      ],
    },
  },
};

const skip = 'skip_thought_signature_validator';
const functionCall = { name: 'weather', args: { city: 'Bern' } };
const called: Turn = { role: 'assistant', content: [call('a'), call('b', 'clock', '{}')] };
const asksAndCalls = [
  { role: 'user', parts: [{ text: 'Hello' }] },
  {
    role: 'model',
    parts: [{ functionCall, thoughtSignature: skip }, { functionCall: { name: 'clock', args: {} } }],
  },
];
const response = (content: string, isError?: boolean): Asked => ({
  turns: [
    question,
    { role: 'assistant', content: [call('a')] },
    { role: 'user', content: [result('a', content, isError)] },
  ],
  sends: {},
});
const mode = (functionCallingConfig: object) => ({ toolConfig: { functionCallingConfig } });
const fitted = { ...schema, properties: { city: expect.objectContaining({ type: 'string' }) } };

const vertexaiRequests: Record<string, Asked> = {
  'tools by their schemas, without strict': {
    parameters: { tools },
    sends: {
      tools: [
        {
          functionDeclarations: [
            { name: 'weather', description: 'Says how it is.', parametersJsonSchema: fitted },
            { name: 'clock' },
          ],
        },
      ],
      toolConfig: undefined,
    },
  },
  'a free choice': { parameters: { tools, toolChoice: 'auto' }, sends: mode({ mode: 'AUTO' }) },
  'a call at least': { parameters: { tools, toolChoice: 'required' }, sends: mode({ mode: 'ANY' }) },
  'the choice of none': { parameters: { tools, toolChoice: 'none' }, sends: mode({ mode: 'NONE' }) },
  'the choice of a tool': {
    parameters: { tools, toolChoice: { name: 'clock' } },
    sends: mode({ mode: 'ANY', allowedFunctionNames: ['clock'] }),
  },
  'no choice without tools': {
    parameters: { toolChoice: 'required' },
    sends: { tools: undefined, toolConfig: undefined },
  },
  'JSON by a schema': {
    parameters: { format: { type: 'json_schema', name: 'n', schema } },
    sends: {
      generationConfig: {
        ...{ maxOutputTokens: 4096, responseMimeType: 'application/json' },
        responseJsonSchema: fitted,
      },
    },
  },
  'JSON without a schema, and how much to think': {
    parameters: { format: { type: 'json_object' }, reasoningEffort: 'low' },
    sends: {
      generationConfig: {
        ...{ maxOutputTokens: 4096, responseMimeType: 'application/json' },
        thinkingConfig: { thinkingLevel: 'LOW' },
      },
    },
  },
  'results in the order of the calls, without ids, and a text in a content of its own': {
    turns: [
      question,
      called,
      { role: 'user', content: [result('b', '12:00'), result('a', 'sun'), said('And?')] },
    ],
    sends: {
      contents: [
        ...asksAndCalls,
        {
          role: 'user',
          parts: [
            { functionResponse: { name: 'weather', response: { output: 'sun' } } },
            { functionResponse: { name: 'clock', response: { output: '12:00' } } },
          ],
        },
        { role: 'user', parts: [{ text: 'And?' }] },
      ],
    },
  },
  'the signature of a call, and none of others': {
    turns: [
      question,
      {
        role: 'assistant',
        content: [
          ...[said('a'), opaque('anthropic', 'BBBB'), opaque('vertexai', 'AAAA'), call('a')],
          ...[call('b', 'clock', '{}'), opaque('vertexai', 'CC=='), call('c', 'clock', '{}')],
        ],
      },
      { role: 'user', content: [result('a', '1'), result('b', '2'), result('c', '3')] },
      { role: 'assistant', content: [opaque('vertexai', 'not base64!'), call('a')] },
      { role: 'user', content: [result('a', '4')] },
    ],
    sends: {
      contents: [
        { role: 'user', parts: [{ text: 'Hello' }] },
        {
          role: 'model',
          parts: [
            { text: 'a' },
            { functionCall, thoughtSignature: 'AAAA' },
            { functionCall: { name: 'clock', args: {} } },
            { functionCall: { name: 'clock', args: {} }, thoughtSignature: 'CC==' },
          ],
        },
        {
          role: 'user',
          parts: ['weather', 'clock', 'clock'].map((name, place) => ({
            functionResponse: { name, response: { output: String(place + 1) } },
          })),
        },
        { role: 'model', parts: [{ functionCall, thoughtSignature: skip }] },
        { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { output: '4' } } }] },
      ],
    },
  },
  'an image': {
    turns: [{ role: 'user', content: [said('a'), png] }],
    sends: {
      contents: [
        { role: 'user', parts: [{ text: 'a' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
      ],
    },
  },
};

const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

describe.each(replyModes)('$mode', ({ stream }) => {
  it.each(Object.entries(openaiRequests))('sends openai %s', async (_, asked) => {
    expect(await send('openai', stream, asked)).toEqual(asked.sends);
  });

  it.each(Object.entries(vertexaiRequests))('sends vertexai %s', async (_, asked) => {
    expect(await send('vertexai', stream, asked)).toEqual(asked.sends);
  });

  it.each<[content: string, sent: object, isError?: boolean]>([
    ['sun', { output: 'sun' }],
    ['', { output: '' }],
    ['no', { error: 'no' }, true],
    ['{"a":1}', { error: '{"a":1}' }, true],
    ['{"a":[1]}', { a: [1] }],
    ['[1]', { output: '[1]' }],
    ['{"output":1}', { output: '{"output":1}' }],
    ['{"error":1}', { output: '{"error":1}' }],
    [deep(32), JSON.parse(deep(32))],
    [deep(33), { output: deep(33) }],
    [deep(10_000), { output: deep(10_000) }],
    [`{"a":"${'b'.repeat(70_000)}"}`, { output: `{"a":"${'b'.repeat(70_000)}"}` }],
  ])('gives vertexai a result of %.20s as an object (%#)', async (content, sent, isError) => {
    const asked = { ...response(content, isError), sends: { contents: [] } };
    const { contents } = await send('vertexai', stream, asked);
    expect((contents as Body[]).at(-1)).toEqual({
      role: 'user',
      parts: [{ functionResponse: { name: 'weather', response: sent } }],
    });
  });
});

interface Answered extends Pick<typeof played, 'whole' | 'chunks'> {
  parameters?: ModelParameters;
  /** The expected fields of the reply. */
  gives: Body;
}

const toolCall = (index: number, piece: object, id?: string) => ({ index, id, function: piece });
const chunkOf = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ delta, finish_reason }],
});
const openaiUsage = {
  ...{ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 3 },
};

const openaiAnswers: Record<string, Answered> = {
  'calls behind a text': {
    whole: {
      choices: [
        {
          message: {
            content: 'Look:',
            tool_calls: [
              wireCall('a'),
              { id: 'b', type: 'function', function: { name: 'clock', arguments: '' } },
            ],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: openaiUsage,
    },
    chunks: [
      chunkOf({ role: 'assistant', content: 'Look:' }),
      chunkOf({ tool_calls: [toolCall(0, { name: 'weather', arguments: '' }, 'a')] }),
      chunkOf({ tool_calls: [toolCall(0, { arguments: '{"city"' })] }),
      chunkOf({
        tool_calls: [
          toolCall(0, { arguments: ':"Bern"}' }),
          toolCall(1, { name: 'clock', arguments: '' }, 'b'),
        ],
      }),
      chunkOf({}, 'tool_calls'),
      { choices: [], usage: openaiUsage },
    ],
    gives: {
      reason: 'stop',
      text: 'Look:',
      calls: [
        ['a', 'weather', '{"city":"Bern"}'],
        ['b', 'clock', '{}'],
      ],
      usage: {
        ...{ inputTokens: 9, outputTokens: 5, cachedTokens: 4, cacheWriteTokens: 2 },
        reasoningTokens: 3,
      },
    },
  },
  'calls that all have the index 0, from a server that speaks like openai': {
    whole: {
      choices: [
        {
          message: {
            content: '',
            tool_calls: [
              { index: 0, ...wireCall('a') },
              { index: 0, ...wireCall('b', 'clock', '{}') },
            ],
          },
          finish_reason: 'tool_calls',
        },
      ],
    },
    chunks: [
      chunkOf({ tool_calls: [toolCall(0, { name: 'weather', arguments: '{"city"' }, 'a')] }),
      // Some name the call again with each piece.
      chunkOf({ tool_calls: [toolCall(0, { name: 'weather', arguments: ':"Bern"}' }, 'a')] }),
      chunkOf({ tool_calls: [toolCall(0, { name: 'clock', arguments: '{}' }, 'b')] }),
      chunkOf({}, 'tool_calls'),
    ],
    gives: {
      text: '',
      calls: [
        ['a', 'weather', '{"city":"Bern"}'],
        ['b', 'clock', '{}'],
      ],
    },
  },
  'a call that the token limit has cut': {
    whole: {
      choices: [
        {
          message: { content: null, tool_calls: [wireCall('a', 'weather', '{"ci')] },
          finish_reason: 'length',
        },
      ],
    },
    chunks: [
      chunkOf({ tool_calls: [toolCall(0, { name: 'weather', arguments: '{"ci' }, 'a')] }),
      chunkOf({}, 'length'),
    ],
    gives: { reason: 'length', text: '', calls: [['a', 'weather', '{"ci']] },
  },
  'a refusal in place of JSON': {
    whole: { choices: [{ message: { content: null, refusal: 'No.' }, finish_reason: 'stop' }] },
    chunks: [chunkOf({ refusal: 'No.' }), chunkOf({}, 'stop')],
    parameters: { format: { type: 'json_object' } },
    gives: { reason: 'blocked', text: '' },
  },
};

const candidate = (parts: object[], finishReason?: string) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason }],
});
const geminiCalls = [
  { text: 'thinking', thought: true },
  { text: 'Look:' },
  { functionCall: { name: 'weather', args: { city: 'Bern' }, id: 'a' }, thoughtSignature: 'AAAA' },
  { functionCall: { name: 'clock' } },
];
const geminiUsage = {
  usageMetadata: {
    ...{ promptTokenCount: 9, candidatesTokenCount: 2, thoughtsTokenCount: 3 },
    cachedContentTokenCount: 4,
  },
};

const vertexaiAnswers: Record<string, Answered> = {
  'calls that end with STOP, in a later chunk': {
    whole: { ...candidate(geminiCalls, 'STOP'), ...geminiUsage },
    chunks: [
      candidate(geminiCalls.slice(0, 3)),
      candidate(geminiCalls.slice(3)),
      { ...candidate([{ text: '' }], 'STOP'), ...geminiUsage },
    ],
    gives: {
      reason: 'stop',
      text: 'Look:',
      calls: [
        ['a', 'weather', '{"city":"Bern"}', 'AAAA'],
        [expect.stringMatching(/^call_[\w-]{24}$/), 'clock', '{}'],
      ],
      usage: { inputTokens: 9, outputTokens: 5, cachedTokens: 4, reasoningTokens: 3 },
    },
  },
  'a reply that is blocked with its call': {
    whole: candidate(geminiCalls, 'SAFETY'),
    chunks: [candidate(geminiCalls, 'SAFETY')],
    gives: { reason: 'blocked', text: '', calls: [] },
  },
};

const broken = [
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
];

describe.each(replyModes)('$mode', ({ stream }) => {
  /** Makes the call, and gives the reply with its calls. */
  async function receive(id: keyof typeof providers, { gives: _, parameters, ...answer }: Answered) {
    Object.assign(played, answer);
    const reply = await ask(providers[id], { model: 'm', stream, parameters: parameters ?? { tools } });
    const calls = callsOf(reply).map((called) =>
      [called.id, called.name, called.arguments, called.signature].filter((field) => field !== undefined),
    );
    return { ...reply, text: textOfTape(reply), calls };
  }

  it.each(Object.entries(openaiAnswers))('reads from openai %s', async (_, answered) => {
    expect(await receive('openai', answered)).toMatchObject(answered.gives);
  });

  it.each(Object.entries(vertexaiAnswers))('reads from vertexai %s', async (_, answered) => {
    expect(await receive('vertexai', answered)).toMatchObject(answered.gives);
  });

  it.each(broken)(
    'takes an answer of vertexai that ends with %s for one that may be repeated',
    async (reason) => {
      const whole = { candidates: [{ content: {}, finishReason: reason }], ...geminiUsage };
      await expect(receive('vertexai', { whole, chunks: [whole], gives: {} })).rejects.toMatchObject({
        ...{ code: 'provider_error', retryable: true, cause: { word: 'malformed_call' } },
      });
    },
  );
});

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

// OpenAI's rule for schemas of strict tools would refuse this one.
const loose = { ...weather, strict: false };

/** A reply as its caller sends it back, with a result for each call and perhaps a text behind them. */
function answered(reply: ProviderReply, idOf: (id: string) => string, text?: string): Turn[] {
  const parts = piecesOf(reply).flatMap((piece): Part[] => {
    if (piece.kind === 'text') return [said(piece.text)];
    const { id, name, arguments: made, signature } = piece;
    return [
      ...(signature === undefined ? [] : [opaque('vertexai', signature)]),
      { type: 'tool_call', id: idOf(id), name, arguments: made },
    ];
  });
  const results = callsOf(reply).map(({ id, name }) => result(idOf(id), `the result of ${name}`));
  return [
    question,
    { role: 'assistant', content: parts },
    { role: 'user', content: [...results, ...(text === undefined ? [] : [said(text)])] },
  ];
}

const setups = providerSetups.filter(({ id }) => id === 'openai' || id === 'vertexai');

describe.each(setups)(
  '$name, against the rules of the simulator',
  async ({ load: loadSetup, id: provider }) => {
    const simulated = await loadSetup(simulator.url);
    afterAll(() => simulated.close());

    describe.each(replyModes)('$mode', ({ stream }) => {
      const run = (model: string, parameters: ModelParameters, turns?: Turn[]) =>
        ask(simulated, { model, stream, parameters, ...(turns && { turns }) });

      it.each<[model: string, names: string[], ModelParameters?]>([
        ['sim-tools', ['weather']],
        ['sim-tools', ['weather'], { toolChoice: 'required' }],
        ['sim-tools', ['clock'], { toolChoice: { name: 'clock' } }],
        ['sim-tools-parallel', ['weather', 'clock']],
        ['sim-tools-128', Array.from({ length: 128 }, () => 'weather')],
        ['sim-tool-signed', ['weather']],
      ])('goes through the calls of %s to an answer: %j', async (model, names, more) => {
        const parameters = { tools: [loose, clock], ...more };
        const reply = await run(model, parameters);
        expect(reply.reason).toBe('stop');
        expect(callsOf(reply).map(({ name }) => name)).toEqual(names);
        for (const made of callsOf(reply)) expect(JSON.parse(made.arguments)).toBeTypeOf('object');
        const isSigned = model === 'sim-tool-signed' && provider === 'vertexai';
        expect(callsOf(reply)[0]?.signature !== undefined).toBe(isSigned);

        const longIds = answered(reply, (id) => `${id}-${'x'.repeat(40)}`);
        for (const turns of [answered(reply, (id) => id), longIds]) {
          const answer = await run(model, parameters, turns);
          expect([answer.reason, answer.marks]).toEqual(['stop', undefined]);
        }
        await run(
          'sim-echo',
          {},
          answered(reply, (id) => id, 'And now?'),
        );
      });

      it('makes no call where the choice is none', async () => {
        expect(await run('sim-tools', { tools: [clock], toolChoice: 'none' })).not.toHaveProperty('marks');
      });

      it('has a reply of JSON by a schema', async () => {
        const format = { type: 'json_schema', name: 'n', schema } as const;
        const { text } = await run('sim-echo', { format });
        expect(JSON.parse(text)).toEqual({ city: expect.any(String) });
      });

      it('sends an image', async () => {
        const pixel =
          'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
        const turns: Turn[] = [{ role: 'user', content: [said('What is it?'), { ...png, data: pixel }] }];
        expect((await run('sim-echo', {}, turns)).reason).toBe('stop');
      });

      it('keeps the beginning of a call that the token limit cuts', async () => {
        const reply = await run('sim-tool-cut-3', {
          tools: [clock, loose],
          toolChoice: { name: 'weather' },
        });
        expect(reply.reason).toBe('length');
        expect(callsOf(reply).map(({ name }) => name)).toEqual(['weather']);
      });

      it.each([
        'sim-tool-unknown',
        'sim-tool-garbage',
        'sim-tool-nameless',
        'sim-tools-129',
        'sim-format-broken',
      ])('refuses the reply of %s, which may be repeated', async (model) => {
        const format = { type: 'json_schema', name: 'n', schema } as const;
        const parameters = model === 'sim-format-broken' ? { format } : { tools: [loose] };
        await expect(run(model, parameters)).rejects.toMatchObject({
          code: 'provider_error',
          retryable: true,
        });
      });

      it.each<ModelParameters>([
        { temperature: 0.2 },
        { seed: 1 },
        { frequencyPenalty: 1 },
        { reasoningEffort: 'high' },
      ])('knows a refusal of %j for one of a hint', async (parameters) => {
        const failure = await run('sim-no-hints', parameters).catch((error) => error);
        expect(refusalOf(failure)).toEqual(Object.keys(parameters));
      });
    });
  },
);
