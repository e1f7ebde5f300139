import { text as readText } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { eventFrame } from '../../../dev/simulator/bedrock/event-frame.js';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Turn } from '../../../shared/conversation.js';
import type { ModelParameters } from '../../../shared/protocol/model-parameters.js';
import { callsOf, textOfTape } from '../../../shared/protocol/parts.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

type Body = Record<string, unknown>;
type Block = Record<string, unknown>;

/** An answer: its blocks, and in a stream its pieces, each as the provider writes it. */
interface Answer {
  blocks: (Block | string)[];
  pieces: [event: string, data: Block][];
  stopReason: string;
  usage: Block;
}

/** The provider's next answer, and the last request that it got. */
const played = { answer: { blocks: [], pieces: [], stopReason: '', usage: {} } as Answer, sent: '' };

const server = await serve(async (request, response) => {
  played.sent = await readText(request);
  const { blocks, pieces, stopReason, usage } = played.answer;
  // Some blocks are written as JSON, for numbers that are not JavaScript's.
  const content = `[${blocks.map((block) => (typeof block === 'string' ? block : JSON.stringify(block))).join()}]`;
  const counts = JSON.stringify(usage);
  if (request.url?.endsWith('/converse'))
    response.end(
      `{"output":{"message":{"role":"assistant","content":${content}}},"stopReason":"${stopReason}","usage":${counts}}`,
    );
  else if (request.url?.endsWith('/converse-stream')) {
    response.setHeader('Content-Type', 'application/vnd.amazon.eventstream');
    for (const [event, data] of pieces) response.write(eventFrame(event, data));
    response.write(eventFrame('messageStop', { stopReason }));
    response.end(eventFrame('metadata', { usage }));
  } else if (JSON.parse(played.sent).stream) {
    response.setHeader('Content-Type', 'text/event-stream');
    const send = (type: string, data: Block) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    send('message_start', { message: { model: 'm', usage: { ...usage, output_tokens: 1 } } });
    for (const [event, data] of pieces) send(event, data);
    send('message_delta', {
      delta: { stop_reason: stopReason },
      usage: { output_tokens: usage.output_tokens },
    });
    send('message_stop', {});
    response.end();
  } else response.end(`{"model":"m","content":${content},"stop_reason":"${stopReason}","usage":${counts}}`);
});
afterAll(() => server.close());

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const load = async (id: 'anthropic' | 'bedrock', { url }: { url: string } = server) => {
  const provider = await providerSetups.find((setup) => setup.id === id)?.load(url);
  if (provider === undefined) throw new Error('there is no such setup');
  afterAll(() => provider.close());
  return provider;
};
const providers = { anthropic: await load('anthropic'), bedrock: await load('bedrock') };
const ids = ['anthropic', 'bedrock'] as const;
type Id = (typeof ids)[number];

const schema = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] };
const fitted = {
  ...{ ...schema, properties: { city: { type: 'string', description: 'minLength: 1' } } },
  additionalProperties: false,
};
const weather = { name: 'weather', description: 'Says how it is.', parameters: schema, strict: true };
const clock = { name: 'clock', description: '', parameters: { additionalProperties: { type: 'string' } } };
const tools = [weather, clock, { name: 'bell' }];

const question: Turn = { role: 'user', content: 'Hello' };
const said = (text: string) => ({ type: 'text', text }) as const;
const call = (id: string, name = 'weather', json = '{"city":"Bern"}') =>
  ({ type: 'tool_call', id, name, arguments: json }) as const;
const result = (callId: string, content: string, isError?: boolean) =>
  ({ type: 'tool_result', callId, content, isError }) as const;
const opaque = (provider: 'vertexai' | Id, data: unknown) =>
  ({ type: 'opaque', provider, data: typeof data === 'string' ? data : JSON.stringify(data) }) as const;
const png = {
  ...{ sha256: '0'.repeat(64), bytes: 3, data: 'AAAA' },
  ...({ type: 'image', mediaType: 'image/png' } as const),
};
const calledTwice: Turn[] = [
  question,
  { role: 'assistant', content: [call('a'), call('b', 'clock', '{}')] },
  { role: 'user', content: [result('b', '12:00'), said('And?'), result('a', 'sun')] },
];

const longId = 'i'.repeat(65);
const oddId = 'call:größe';
const shortId = expect.stringMatching(/^c_[\w-]{22}$/);
const thinking = [
  { type: 'thinking', thinking: 'Hm “ß”\n', signature: 'c2ln' },
  { type: 'thinking', thinking: '', signature: 'bm9uZQ==' },
  { type: 'redacted_thinking', data: 'cmVk' },
];
const reasoning = [
  { reasoningText: { text: 'Hm “ß”\n', signature: 'c2ln' } },
  { reasoningText: { text: '', signature: 'bm9uZQ==' } },
  { redactedContent: 'cmVk' },
];
const foreign = [opaque('vertexai', 'AAAA'), opaque('bedrock', thinking), opaque('anthropic', reasoning)];
const wrong = ['no JSON', [{ type: 'text', text: 'a' }], {}, [{ ...thinking[0], cache_control: {} }]];
const wronglySigned = wrong.flatMap((data) => [opaque('anthropic', data), opaque('bedrock', data)]);

/** A request, and its fields of these names as each provider gets them; undefined for one that it has not. */
interface Asked {
  turns?: Turn[];
  parameters?: ModelParameters;
  anthropic: Body;
  bedrock: Body;
}

const use = (id: unknown, name = 'weather', input: unknown = { city: 'Bern' }) => ({
  anthropic: { type: 'tool_use', id, name, input },
  bedrock: { toolUse: { toolUseId: id, name, input } },
});
const resultOf = (id: unknown, text: string) => ({
  anthropic: { type: 'tool_result', tool_use_id: id, content: text },
  bedrock: { toolResult: { toolUseId: id, content: [{ text }] } },
});
const messagesOf = (id: Id, ...contents: unknown[]) => ({
  messages: ['Hello', ...contents].map((content, n) => ({
    role: n % 2 === 0 ? 'user' : 'assistant',
    content: id === 'bedrock' && content === 'Hello' ? [{ text: 'Hello' }] : content,
  })),
});
const toolsAtBedrock = [
  {
    toolSpec: {
      name: 'weather',
      description: 'Says how it is.',
      inputSchema: { json: fitted },
      strict: true,
    },
  },
  { toolSpec: { name: 'clock', inputSchema: { json: { type: 'object', ...clock.parameters } } } },
  { toolSpec: { name: 'bell', inputSchema: { json: { type: 'object', properties: {} } } } },
];
const choice = (toolChoice: Body | undefined) => ({
  toolConfig: { tools: toolsAtBedrock, ...(toolChoice && { toolChoice }) },
});

const requests: Record<string, Asked> = {
  'tools, of which one is strict': {
    parameters: { tools },
    anthropic: {
      tools: [
        { name: 'weather', description: 'Says how it is.', input_schema: fitted, strict: true },
        { name: 'clock', input_schema: { type: 'object', ...clock.parameters } },
        { name: 'bell', input_schema: { type: 'object', properties: {} } },
      ],
      tool_choice: undefined,
    },
    bedrock: choice(undefined),
  },
  'a free choice of one call at most': {
    parameters: { tools, parallelToolCalls: false },
    anthropic: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    bedrock: choice(undefined),
  },
  'a free choice': {
    parameters: { tools, toolChoice: 'auto', parallelToolCalls: true },
    anthropic: { tool_choice: { type: 'auto' } },
    bedrock: choice({ auto: {} }),
  },
  'the choice of one call': {
    parameters: { tools, toolChoice: 'required', parallelToolCalls: false },
    anthropic: { tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    bedrock: choice({ any: {} }),
  },
  'the choice of a tool': {
    parameters: { tools, toolChoice: { name: 'clock' } },
    anthropic: { tool_choice: { type: 'tool', name: 'clock' } },
    bedrock: choice({ tool: { name: 'clock' } }),
  },
  'the choice of none': {
    parameters: { tools, toolChoice: 'none', parallelToolCalls: false },
    anthropic: { tool_choice: { type: 'none' } },
    bedrock: { toolConfig: undefined },
  },
  'the choice of none where there are calls': {
    turns: calledTwice,
    parameters: { tools, toolChoice: 'none' },
    anthropic: { tool_choice: { type: 'none' } },
    bedrock: choice(undefined),
  },
  'no choice without tools': {
    parameters: { toolChoice: 'required', parallelToolCalls: false },
    anthropic: { tools: undefined, tool_choice: undefined },
    bedrock: { toolConfig: undefined },
  },
  'calls without tools': {
    turns: calledTwice,
    parameters: { toolChoice: 'required' },
    anthropic: { tools: undefined, tool_choice: undefined },
    bedrock: {
      toolConfig: {
        tools: ['weather', 'clock'].map((name) => ({
          toolSpec: {
            ...{ name, description: expect.stringMatching(/\w/) },
            inputSchema: { json: { type: 'object' } },
          },
        })),
      },
    },
  },
  'all results first, in the order of their calls': {
    turns: calledTwice,
    anthropic: messagesOf(
      'anthropic',
      [use('a').anthropic, use('b', 'clock', {}).anthropic],
      [resultOf('a', 'sun').anthropic, resultOf('b', '12:00').anthropic, said('And?')],
    ),
    bedrock: messagesOf(
      'bedrock',
      [use('a').bedrock, use('b', 'clock', {}).bedrock],
      [resultOf('a', 'sun').bedrock, resultOf('b', '12:00').bedrock, { text: 'And?' }],
    ),
  },
  'ids that it takes, and failures and blanks as a text': {
    turns: [
      question,
      { role: 'assistant', content: [said(' '), call(oddId), call(longId)] },
      { role: 'user', content: [result(oddId, 'broken', true), result(longId, ' \n')] },
    ],
    anthropic: messagesOf(
      'anthropic',
      [use(shortId).anthropic, use(longId).anthropic],
      [
        { ...resultOf(shortId, 'broken').anthropic, is_error: true },
        resultOf(longId, '(no output)').anthropic,
      ],
    ),
    bedrock: messagesOf(
      'bedrock',
      [use(shortId).bedrock, use(shortId).bedrock],
      [
        { toolResult: { ...resultOf(shortId, 'broken').bedrock.toolResult, status: 'error' } },
        resultOf(shortId, '(no output)').bedrock,
      ],
    ),
  },
  'its own signed thinking, and none of others, nor what is none': {
    turns: [
      question,
      {
        role: 'assistant',
        content: [
          ...[opaque('anthropic', thinking), opaque('bedrock', reasoning), call('a')],
          ...[...foreign, ...wronglySigned, call('b')],
        ],
      },
      { role: 'user', content: [result('a', '1'), result('b', '2')] },
    ],
    anthropic: messagesOf(
      'anthropic',
      [...thinking, use('a').anthropic, use('b').anthropic],
      [resultOf('a', '1').anthropic, resultOf('b', '2').anthropic],
    ),
    bedrock: messagesOf(
      'bedrock',
      [
        ...reasoning.map((reasoningContent) => ({ reasoningContent })),
        ...[use('a').bedrock, use('b').bedrock],
      ],
      [resultOf('a', '1').bedrock, resultOf('b', '2').bedrock],
    ),
  },
  'its signed thinking before the text that it has thought about, as it was': {
    turns: [
      question,
      {
        role: 'assistant',
        content: [
          ...[said('Look:'), opaque('anthropic', thinking), opaque('bedrock', reasoning), call('a')],
          ...[opaque('anthropic', thinking), opaque('bedrock', reasoning), call('b')],
        ],
      },
      { role: 'user', content: [result('a', '1'), result('b', '2')] },
    ],
    anthropic: messagesOf(
      'anthropic',
      [
        ...[...thinking, { type: 'text', text: 'Look:' }, use('a').anthropic],
        ...[...thinking, use('b').anthropic],
      ],
      [resultOf('a', '1').anthropic, resultOf('b', '2').anthropic],
    ),
    bedrock: messagesOf(
      'bedrock',
      [
        ...reasoning.map((reasoningContent) => ({ reasoningContent })),
        ...[{ text: 'Look:' }, use('a').bedrock],
        ...reasoning.map((reasoningContent) => ({ reasoningContent })),
        use('b').bedrock,
      ],
      [resultOf('a', '1').bedrock, resultOf('b', '2').bedrock],
    ),
  },
  images: {
    turns: [{ role: 'user', content: [said('What?'), png] }],
    anthropic: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          ],
        },
      ],
    },
    bedrock: {
      messages: [
        {
          role: 'user',
          content: [{ text: 'What?' }, { image: { format: 'png', source: { bytes: 'AAAA' } } }],
        },
      ],
    },
  },
  'JSON by a schema, and effort': {
    parameters: {
      format: { type: 'json_schema', name: 'answer', description: 'How it is.', schema },
      reasoningEffort: 'xhigh',
    },
    anthropic: {
      output_config: {
        format: { type: 'json_schema', schema: { description: 'How it is.', ...fitted } },
        effort: 'xhigh',
      },
    },
    bedrock: {
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: {
            jsonSchema: { name: 'answer', description: 'How it is.', schema: JSON.stringify(fitted) },
          },
        },
        effort: 'xhigh',
      },
    },
  },
  'effort alone': {
    parameters: { reasoningEffort: 'low' },
    anthropic: { output_config: { effort: 'low' } },
    bedrock: { outputConfig: { effort: 'low' } },
  },
  'no effort that it does not know': {
    parameters: { reasoningEffort: 'minimal' },
    anthropic: { output_config: undefined },
    bedrock: { outputConfig: undefined },
  },
};

/** An answer of each provider that means the same, and what is made of it. */
interface Answered extends Record<Id, Answer> {
  gives: (id: Id) => Body;
}

const start = (index: number, block: Block): Answer['pieces'] => [
  ['content_block_start', { index, content_block: block }],
];
const deltas = (index: number, ...pieces: Block[]): Answer['pieces'] =>
  pieces.map((delta) => ['content_block_delta', { index, delta }]);
const converseDeltas = (contentBlockIndex: number, ...pieces: Block[]): Answer['pieces'] =>
  pieces.map((delta) => ['contentBlockDelta', { contentBlockIndex, delta }]);
const pieceOf = (partial_json: string) => ({ type: 'input_json_delta', partial_json });
const anthropicUse = (index: number, id: string, name: string, ...pieces: string[]): Answer['pieces'] => [
  ...start(index, { type: 'tool_use', id, name, input: {} }),
  ...deltas(index, ...pieces.map(pieceOf)),
  ['content_block_stop', { index }],
];
const bedrockUse = (
  index: number,
  toolUseId: string,
  name: string,
  ...pieces: string[]
): Answer['pieces'] => [
  ['contentBlockStart', { contentBlockIndex: index, start: { toolUse: { toolUseId, name } } }],
  ...converseDeltas(index, ...pieces.map((input) => ({ toolUse: { input } }))),
  ['contentBlockStop', { contentBlockIndex: index }],
];
const anthropicUsage = {
  ...{ input_tokens: 9, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 7 },
  output_tokens_details: { thinking_tokens: 3 },
};
const bedrockUsage = {
  ...{ inputTokens: 9, cacheReadInputTokens: 4, cacheWriteInputTokens: 2, outputTokens: 7, totalTokens: 22 },
};
const usage = { inputTokens: 15, outputTokens: 7, cachedTokens: 4, cacheWriteTokens: 2 };
const large = '{"id":12345678901234567890,"sum":0.12345678901234567890,"none":null}';

const answers: Record<string, Answered> = {
  'calls behind a text': {
    anthropic: {
      blocks: [{ type: 'text', text: 'Look:' }, use('a').anthropic, use('b', 'clock', {}).anthropic],
      pieces: [
        ['ping', {}],
        ...start(0, { type: 'text', text: '' }),
        ...deltas(0, { type: 'text_delta', text: 'Look:' }),
        ...anthropicUse(1, 'a', 'weather', '', '{"city"', ':"Bern"}'),
        ...anthropicUse(2, 'b', 'clock'),
      ],
      stopReason: 'tool_use',
      usage: anthropicUsage,
    },
    bedrock: {
      blocks: [{ text: 'Look:' }, use('a').bedrock, use('b', 'clock', {}).bedrock],
      pieces: [
        ['messageStart', { role: 'assistant' }],
        ...converseDeltas(0, { text: 'Look:' }),
        ...bedrockUse(1, 'a', 'weather', '', '{"city"', ':"Bern"}'),
        ...bedrockUse(2, 'b', 'clock'),
      ],
      stopReason: 'tool_use',
      usage: bedrockUsage,
    },
    gives: (id) => ({
      ...{ reason: 'stop', text: 'Look:' },
      usage: { ...usage, ...(id === 'anthropic' && { reasoningTokens: 3 }) },
      calls: [
        ['a', 'weather', '{"city":"Bern"}', undefined],
        ['b', 'clock', '{}', undefined],
      ],
    }),
  },
  'signed thinking before the first of its calls': {
    anthropic: {
      blocks: [...thinking, use('a').anthropic, use('b', 'clock', {}).anthropic],
      pieces: [
        ...start(0, { type: 'thinking', thinking: '', signature: '' }),
        ...deltas(
          0,
          { type: 'thinking_delta', thinking: 'Hm ' },
          { type: 'thinking_delta', thinking: '“ß”\n' },
        ),
        ...deltas(0, { type: 'signature_delta', signature: 'c2ln' }),
        ...start(1, { type: 'thinking', thinking: '', signature: '' }),
        ...deltas(1, { type: 'signature_delta', signature: 'bm9uZQ==' }),
        ...start(2, { type: 'redacted_thinking', data: 'cmVk' }),
        ...anthropicUse(3, 'a', 'weather', '{"city":"Bern"}'),
        ...anthropicUse(4, 'b', 'clock', '{}'),
      ],
      stopReason: 'tool_use',
      usage: anthropicUsage,
    },
    bedrock: {
      blocks: [
        ...reasoning.map((reasoningContent) => ({ reasoningContent })),
        ...[use('a').bedrock, use('b', 'clock', {}).bedrock],
      ],
      pieces: [
        ...converseDeltas(0, { reasoningContent: { text: 'Hm ' } }, { reasoningContent: { text: '“ß”\n' } }),
        ...converseDeltas(0, { reasoningContent: { signature: 'c2ln' } }),
        ...converseDeltas(1, { reasoningContent: { signature: 'bm9uZQ==' } }),
        ...converseDeltas(2, { reasoningContent: { redactedContent: 'cmVk' } }),
        ...bedrockUse(3, 'a', 'weather', '{"city":"Bern"}'),
        ...bedrockUse(4, 'b', 'clock', '{}'),
      ],
      stopReason: 'tool_use',
      usage: bedrockUsage,
    },
    gives: (id) => ({
      ...{ reason: 'stop', text: '' },
      calls: [
        ['a', 'weather', '{"city":"Bern"}', id === 'bedrock' ? reasoning : thinking],
        ['b', 'clock', '{}', undefined],
      ],
    }),
  },
  'each digit of a number': {
    anthropic: {
      blocks: [`{"type":"tool_use","id":"a","name":"weather","input":${large}}`],
      pieces: anthropicUse(0, 'a', 'weather', large),
      stopReason: 'tool_use',
      usage: anthropicUsage,
    },
    bedrock: {
      blocks: [`{"toolUse":{"toolUseId":"a","name":"weather","input":${large}}}`],
      pieces: bedrockUse(0, 'a', 'weather', large),
      stopReason: 'tool_use',
      usage: bedrockUsage,
    },
    gives: () => ({ text: '', calls: [['a', 'weather', large, undefined]] }),
  },
  'a call that the token limit has cut': {
    anthropic: {
      blocks: [use('a').anthropic],
      pieces: anthropicUse(0, 'a', 'weather', '{"city":"Bern"}'),
      stopReason: 'max_tokens',
      usage: anthropicUsage,
    },
    bedrock: {
      blocks: [use('a').bedrock],
      pieces: bedrockUse(0, 'a', 'weather', '{"city":"Bern"}'),
      stopReason: 'max_tokens',
      usage: bedrockUsage,
    },
    gives: () => ({ reason: 'length', text: '', calls: [['a', 'weather', '{"city":"Bern"}', undefined]] }),
  },
};

const plainAnswers: Record<Id, Answer> = {
  anthropic: {
    blocks: [{ type: 'text', text: '{}' }],
    pieces: [...start(0, { type: 'text', text: '' }), ...deltas(0, { type: 'text_delta', text: '{}' })],
    ...{ stopReason: 'end_turn', usage: {} },
  },
  bedrock: {
    blocks: [{ text: '{}' }],
    pieces: converseDeltas(0, { text: '{}' }),
    ...{ stopReason: 'end_turn', usage: {} },
  },
};

describe.each(ids)('%s', (id) => {
  const plain = plainAnswers[id];
  const play = (answer: Answer, asked: { stream: boolean; turns?: Turn[]; parameters?: ModelParameters }) => {
    played.answer = answer;
    return ask(providers[id], { model: 'm', ...asked });
  };

  describe.each(replyModes)('$mode', ({ stream }) => {
    it.each(Object.entries(requests))(
      'sends %s',
      async (_, { turns = [question], parameters = {}, ...sends }) => {
        await play(plain, { stream, turns, parameters });
        const body: Body = JSON.parse(played.sent);
        const fields = Object.keys(sends[id]).map((name) => [name, body[name]]);
        expect(Object.fromEntries(fields)).toEqual(sends[id]);
      },
    );

    it.each(Object.entries(answers))('reads %s', async (_, { [id]: answer, gives }) => {
      const reply = await play(answer, { stream, parameters: { tools } });
      const calls = callsOf(reply).map((called) => [
        ...[called.id, called.name, called.arguments],
        called.signature && JSON.parse(called.signature),
      ]);
      expect({ ...reply, calls, text: textOfTape(reply) }).toMatchObject(gives(id));
    });

    it('sends each digit of the arguments of a call', async () => {
      const turns: Turn[] = [
        question,
        { role: 'assistant', content: [call('a', 'weather', large)] },
        { role: 'user', content: [result('a', 'sun')] },
      ];
      await play(plain, { stream, turns, parameters: { tools } });
      expect(played.sent).toContain(large);
    });

    it.each(id === 'bedrock' ? ['malformed_tool_use', 'malformed_model_output'] : ['pause_turn'])(
      'takes no reply that ends with %s, and may ask again',
      async (stopReason) => {
        const failing = play({ ...plain, stopReason }, { stream, parameters: { tools } });
        await expect(failing).rejects.toMatchObject({
          ...{ code: 'provider_error', retryable: true },
          cause: { word: id === 'bedrock' ? 'malformed_call' : 'unfinished' },
        });
      },
    );
  });
});

it('sends the address of an image to Anthropic, which fetches it', async () => {
  const url = 'https://example.org/a.png';
  played.answer = plainAnswers.anthropic;
  const turns: Turn[] = [{ role: 'user', content: [{ type: 'image', url }] }];
  await ask(providers.anthropic, { model: 'm', stream: false, turns });
  expect(JSON.parse(played.sent).messages).toEqual([
    { role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] },
  ]);
});

describe.each(ids)('%s, by the rules of the simulator', async (id) => {
  const provider = await load(id, simulator);

  describe.each(replyModes)('$mode', ({ stream }) => {
    /** Has the model call, and gives it the results, in the wrong order and with a text before them. */
    async function converse(model: string, parameters: ModelParameters, idOf = (given: string) => given) {
      const reply = await ask(provider, { model, stream, parameters: { tools, ...parameters } });
      const calls = callsOf(reply);
      const turns: Turn[] = [
        question,
        {
          role: 'assistant',
          content: calls.flatMap((called) => [
            ...(called.signature ? [opaque(id, called.signature)] : []),
            call(idOf(called.id), called.name, called.arguments),
          ]),
        },
        {
          role: 'user',
          content: [said('And?'), ...calls.map((called) => result(idOf(called.id), '')).reverse()],
        },
      ];
      return { names: calls.map(({ name }) => name), calls, turns };
    }
    const answer = async (turns: Turn[], parameters: ModelParameters) =>
      (await ask(provider, { model: 'sim-echo', stream, turns, parameters })).reason;

    it.each<[ModelParameters['toolChoice'], string[]]>([
      ['required', ['weather', 'clock', 'bell']],
      ['auto', ['weather', 'clock', 'bell']],
      [{ name: 'clock' }, ['clock']],
    ])('calls with the choice %j, and goes on with the results', async (toolChoice, names) => {
      const called = await converse('sim-tools-parallel', { toolChoice });
      expect(called.names).toEqual(names);
      expect(await answer(called.turns, { tools })).toBe('stop');
      expect(await answer(called.turns, {})).toBe('stop');
      expect(await answer(called.turns, { tools, toolChoice: 'none' })).toBe('stop');
    });

    it.each([{ name: 'bell' }, 'required'] as const)(
      'is refused the choice %j by a model that always thinks',
      async (toolChoice) => {
        const parameters = { tools, toolChoice };
        const asked = ask(provider, { model: 'sim-always-thinks', stream, parameters });
        const cause = expect.objectContaining({ refusedParameter: 'toolChoice' });
        await expect(asked).rejects.toMatchObject({ code: 'provider_rejected', cause });
      },
    );

    it('hands out no call where the choice is none', async () => {
      const { turns } = await converse('sim-tools', {});
      const parameters = { tools, toolChoice: 'none' } as const;
      const asked = ask(provider, { model: 'sim-tools', stream, turns, parameters });
      if (id === 'bedrock')
        await expect(asked).rejects.toMatchObject({ code: 'provider_error', retryable: true });
      else expect(callsOf(await asked)).toEqual([]);
    });

    it('takes its signed thinking back, and ids from elsewhere', async () => {
      const { calls, turns } = await converse('sim-tool-signed', {}, (given) => `${given}:${longId}`);
      expect(calls[0]?.signature).toMatch(/^\[\{/);
      expect(await answer(turns, { tools })).toBe('stop');
    });
  });
});
