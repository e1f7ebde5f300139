import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { Part, Turn } from '../../../shared/conversation.js';
import { markSystem } from '../../../shared/protocol/alternating-turns.js';
import { startPlaying } from '../../support/playing-provider.js';
import { plain, reasoning, thinking } from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play, sent } = await startPlaying();

const said = (text: string): Part => ({ type: 'text', text });
const call = (id: string, name = 'weather', json = '{"city":"Bern"}'): Part => ({
  ...{ type: 'tool_call', id, name, arguments: json },
});
const result = (callId: string, content: string, isError?: true): Part => ({
  ...{ type: 'tool_result', callId, content },
  ...(isError && { isError }),
});
const opaque = (provider: 'vertexai' | 'anthropic' | 'bedrock', data: unknown, model?: string): Part => ({
  ...{ type: 'opaque', provider, data: typeof data === 'string' ? data : JSON.stringify(data) },
  ...(model !== undefined && { model }),
});
/** A signature as the tape keeps it, of the model that is asked or of another. */
const signature = (of: 'call' | 'text', thoughtSignature: string, model = 'm'): Part => ({
  ...{ type: 'opaque', provider: 'vertexai', model, role: 'block' },
  data: JSON.stringify({ thoughtSignature, of }),
});
const png: Part = { type: 'image', mediaType: 'image/png', sha256: '0'.repeat(64), bytes: 3, data: 'AAAA' };
const linked: Part = { type: 'image', url: 'https://example.org/i' };

const turn = (role: Turn['role'], content: Turn['content']): Turn => ({ role, content });

/** After a greeting, turns of the assistant and of the user. */
const turnsOf = (...contents: Turn['content'][]): Turn[] => [
  turn('user', 'Hello'),
  ...contents.map((content, n) => turn(n % 2 === 0 ? 'assistant' : 'user', content)),
];

// Blocks as each provider writes them.
const wireCall = (id: unknown, name = 'weather', json = '{"city":"Bern"}') => ({
  ...{ id, type: 'function', function: { name, arguments: json } },
});
const tool = (tool_call_id: unknown, content: string) => ({ role: 'tool', tool_call_id, content });
const use = (id: unknown, name = 'weather', input: object = { city: 'Bern' }) => ({
  ...{ type: 'tool_use', id, name, input },
});
const toolResult = (tool_use_id: unknown, content: string, more?: object) => ({
  ...{ type: 'tool_result', tool_use_id, content, ...more },
});
const converseUse = (toolUseId: unknown, name = 'weather', input: object = { city: 'Bern' }) => ({
  toolUse: { toolUseId, name, input },
});
const converseResult = (toolUseId: unknown, text: string, more?: object) => ({
  toolResult: { toolUseId, content: [{ text }], ...more },
});
const functionCall = (thoughtSignature?: string, name = 'weather', args: object = { city: 'Bern' }) => ({
  ...{ functionCall: { name, args }, ...(thoughtSignature && { thoughtSignature }) },
});
const functionResponse = (output: string, name = 'weather') => ({
  functionResponse: { name, response: { output } },
});
const skip = 'skip_thought_signature_validator';
const text = (written: string) => ({ type: 'text', text: written });

const longId = 'i'.repeat(65);
const id41 = 'i'.repeat(41);
const oddId = 'call:größe';
const shortId = expect.stringMatching(/^c_[\w-]{22}$/);
const reasoned = reasoning.map((reasoningContent) => ({ reasoningContent }));
const signed = [opaque('anthropic', thinking), opaque('bedrock', reasoning), opaque('vertexai', 'AAAA')];
const foreign = [
  opaque('bedrock', thinking),
  opaque('anthropic', reasoning),
  opaque('vertexai', 'no base64!'),
];
/** The block of this place of Claude's thinking, at both of its providers. */
const placed = (place: number, model = 'm') => [
  opaque('anthropic', thinking[place], model),
  opaque('bedrock', reasoning[place], model),
];
const wrong = ['no JSON', [{ type: 'text', text: 'a' }], {}, [{ ...thinking[0], cache_control: {} }]].flatMap(
  (data) => [opaque('anthropic', data), opaque('bedrock', data)],
);

/** A conversation, and what comes of it behind the greeting at each provider: messages of OpenAI, else contents. */
interface Conversation extends Partial<Record<ProviderId, unknown[]>> {
  turns: Turn[];
  system?: string[];
}

const [brief, festive] = [' Be brief. ', '\uFEFF🎉\r\n'];
const [odd, odder] = ['\u0000\tc 👩🏽‍💻', '\n"a" \\ <b>\u2028'];

const conversations: Record<string, Conversation> = {
  'texts of every role -> each byte for byte, later ones of the system in the turn of the user': {
    turns: [...turnsOf(odd, odder).toSpliced(1, 0, turn('system', brief)), turn('system', festive)],
    openai: [turn('system', brief), turn('assistant', odd), turn('user', odder), turn('system', festive)],
    bedrock: [[{ text: odd }], [{ text: odder }, { text: markSystem(festive) }]],
    vertexai: [[{ text: odd }], [{ text: odder }, { text: markSystem(festive) }]],
  },
  'system texts alone -> those of the system': {
    turns: [turn('system', brief), turn('system', festive)],
    system: [brief, festive],
    openai: [turn('system', festive)],
    anthropic: [],
    bedrock: [],
    vertexai: [],
  },
  'results in another order, and a text between them -> results first, in the order of their calls': {
    turns: turnsOf(
      [call('a'), call('b', 'clock', '{}')],
      [result('b', '12:00'), said('And?'), result('a', 'sun')],
    ),
    openai: [
      { role: 'assistant', content: null, tool_calls: [wireCall('a'), wireCall('b', 'clock', '{}')] },
      ...[tool('b', '12:00'), tool('a', 'sun'), { role: 'user', content: [text('And?')] }],
    ],
    anthropic: [
      [use('a'), use('b', 'clock', {})],
      [toolResult('a', 'sun'), toolResult('b', '12:00'), text('And?')],
    ],
    bedrock: [
      [converseUse('a'), converseUse('b', 'clock', {})],
      [converseResult('a', 'sun'), converseResult('b', '12:00'), { text: 'And?' }],
    ],
    // A text in a content of its own, and no ids.
    vertexai: [
      [functionCall(skip), functionCall(undefined, 'clock', {})],
      [functionResponse('sun'), functionResponse('12:00', 'clock')],
      [{ text: 'And?' }],
    ],
  },
  'ids from elsewhere, failures, and blanks -> ids that it takes, and no blank text': {
    turns: turnsOf(
      [said(' '), call(oddId), call(longId), call(id41)],
      [result(oddId, 'broken', true), result(longId, ' \n'), result(id41, '1'), said('')],
    ),
    openai: [
      {
        ...{ role: 'assistant', content: ' ' },
        tool_calls: [wireCall(oddId), wireCall(shortId), wireCall(shortId)],
      },
      ...[tool(oddId, 'broken'), tool(shortId, ' \n'), tool(shortId, '1')],
    ],
    anthropic: [
      [use(shortId), use(longId), use(id41)],
      [
        toolResult(shortId, 'broken', { is_error: true }),
        ...[toolResult(longId, '(no output)'), toolResult(id41, '1')],
      ],
    ],
    bedrock: [
      [converseUse(shortId), converseUse(shortId), converseUse(id41)],
      [
        converseResult(shortId, 'broken', { status: 'error' }),
        ...[converseResult(shortId, '(no output)'), converseResult(id41, '1')],
      ],
    ],
  },
  'signed thinking of several as 0.8 kept it -> its own before the text that it thought about, none of others':
    {
      turns: turnsOf(
        [said('Look:'), ...signed, call('a'), call('b'), ...signed, call('c')],
        [result('a', '1'), result('b', '2'), result('c', '3')],
        [opaque('vertexai', 'no base64!'), call('a')],
        [result('a', '4')],
      ),
      openai: [
        {
          ...{ role: 'assistant', content: 'Look:' },
          tool_calls: [wireCall('a'), wireCall('b'), wireCall('c')],
        },
        ...[tool('a', '1'), tool('b', '2'), tool('c', '3')],
        { role: 'assistant', content: null, tool_calls: [wireCall('a')] },
        tool('a', '4'),
      ],
      anthropic: [
        [...thinking, text('Look:'), use('a'), use('b'), ...thinking, use('c')],
        [toolResult('a', '1'), toolResult('b', '2'), toolResult('c', '3')],
        ...[[use('a')], [toolResult('a', '4')]],
      ],
      bedrock: [
        [...reasoned, { text: 'Look:' }, converseUse('a'), converseUse('b'), ...reasoned, converseUse('c')],
        [converseResult('a', '1'), converseResult('b', '2'), converseResult('c', '3')],
        ...[[converseUse('a')], [converseResult('a', '4')]],
      ],
      vertexai: [
        [{ text: 'Look:' }, functionCall('AAAA'), functionCall(), functionCall('AAAA')],
        ['1', '2', '3'].map((output) => functionResponse(output)),
        ...[[functionCall(skip)], [functionResponse('4')]],
      ],
    },
  'thinking of one of which a part is none -> none of it': {
    turns: turnsOf(
      [...signed, call('a'), ...foreign, ...wrong, call('b')],
      [result('a', '1'), result('b', '2')],
    ),
    anthropic: [
      [use('a'), use('b')],
      [toolResult('a', '1'), toolResult('b', '2')],
    ],
    bedrock: [
      [converseUse('a'), converseUse('b')],
      [converseResult('a', '1'), converseResult('b', '2')],
    ],
  },
  'thinking of its model, of another and of others -> that of its model, in its place': {
    turns: turnsOf(
      [
        ...[
          ...placed(1),
          said('Look:'),
          ...placed(0, 'other'),
          ...placed(2),
          call('a'),
          ...placed(0),
          call('b'),
        ],
      ],
      [result('a', '1'), result('b', '2')],
    ),
    openai: [
      { role: 'assistant', content: 'Look:', tool_calls: [wireCall('a'), wireCall('b')] },
      ...[tool('a', '1'), tool('b', '2')],
    ],
    anthropic: [
      [thinking[1], text('Look:'), thinking[2], use('a'), thinking[0], use('b')],
      [toolResult('a', '1'), toolResult('b', '2')],
    ],
    bedrock: [
      [reasoned[1], { text: 'Look:' }, reasoned[2], converseUse('a'), reasoned[0], converseUse('b')],
      [converseResult('a', '1'), converseResult('b', '2')],
    ],
  },
  'images between texts -> images in their places, and an address where the provider fetches it': {
    turns: turnsOf([said('Hi')], [said('a'), png, linked, said('b')]),
    openai: [
      { role: 'assistant', content: 'Hi' },
      {
        role: 'user',
        content: [
          ...[text('a'), { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
          ...[{ type: 'image_url', image_url: { url: 'https://example.org/i' } }, text('b')],
        ],
      },
    ],
    anthropic: [
      [text('Hi')],
      [
        text('a'),
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        { type: 'image', source: { type: 'url', url: 'https://example.org/i' } },
        text('b'),
      ],
    ],
    bedrock: [
      [{ text: 'Hi' }],
      [{ text: 'a' }, { image: { format: 'png', source: { bytes: 'AAAA' } } }, { text: 'b' }],
    ],
    vertexai: [
      [{ text: 'Hi' }],
      [{ text: 'a' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { text: 'b' }],
    ],
  },
};

Object.assign(conversations, {
  'signatures of texts and calls, in their places -> each on its part': {
    turns: turnsOf(
      [
        ...[said('Look:'), signature('text', 'AAAA'), said('And:'), signature('call', 'BBBB'), call('a')],
        ...[call('b'), signature('text', 'CCCC')],
      ],
      [result('a', 'sun'), result('b', 'rain')],
      [said('Sun.'), signature('text', 'DDDD'), signature('text', 'EEEE')],
      'Thanks',
    ),
    vertexai: [
      [
        ...[{ text: 'Look:', thoughtSignature: 'AAAA' }, { text: 'And:' }, functionCall('BBBB')],
        ...[functionCall(), { text: '', thoughtSignature: 'CCCC' }],
      ],
      [functionResponse('sun'), functionResponse('rain')],
      [
        { text: 'Sun.', thoughtSignature: 'DDDD' },
        { text: '', thoughtSignature: 'EEEE' },
      ],
      [{ text: 'Thanks' }],
    ],
  },
  'signatures of another model, or that are none -> left out, and the call has the value that skips its check':
    {
      turns: turnsOf(
        [
          ...[said('Look:'), signature('text', 'AAAA', 'other'), signature('text', 'no base64!')],
          ...[signature('call', 'BBBB', 'other'), call('a')],
        ],
        [result('a', 'sun')],
      ),
      vertexai: [[{ text: 'Look:' }, functionCall(skip)], [functionResponse('sun')]],
    },
} satisfies Record<string, Conversation>);

const cases = providerIds.flatMap((provider) =>
  Object.entries(conversations).flatMap(([given, { turns, system, [provider]: gets }]) =>
    gets === undefined ? [] : [{ provider, given, turns, system, gets }],
  ),
);

/** The field of a body that has the texts of the system. */
const systemOf: Record<ProviderId, (texts?: string[]) => object> = {
  openai: () => ({}),
  anthropic: (texts) => ({ system: texts?.map(text) }),
  bedrock: (texts) => ({ system: texts?.map((said) => ({ text: said })) }),
  vertexai: (texts) => ({
    systemInstruction: texts && expect.objectContaining({ parts: texts.map((said) => ({ text: said })) }),
  }),
};

describe.each(replyModes)('$mode', ({ stream }) => {
  const send = async (provider: ProviderId, turns: Turn[]) => {
    await play(provider, plain[provider](), { stream, turns, parameters: { tools: [{ name: 'weather' }] } });
    const { messages, contents = messages } = JSON.parse(sent());
    return contents.slice(1) as { role: string; content?: unknown; parts?: unknown }[];
  };

  it.each(cases)('$provider is sent $given', async ({ provider, turns, system, gets }) => {
    const messages = await send(provider, turns);
    const body = { system: undefined, systemInstruction: undefined, ...JSON.parse(sent()) };
    expect(body).toMatchObject(systemOf[provider](system));
    if (provider === 'openai') expect(messages).toEqual(gets);
    else {
      expect(messages.map(({ content, parts }) => content ?? parts)).toEqual(gets);
      const model = provider === 'vertexai' ? 'model' : 'assistant';
      // Only Vertex AI gets two contents of the user's in a row, the last ones.
      const roles = gets.map((_, n) => (n % 2 === 0 && n < 2 * Math.floor(gets.length / 2) ? model : 'user'));
      expect(messages.map(({ role }) => role)).toEqual(roles);
    }
  });

  it.each(providerIds)('%s is sent a call with a long number -> each digit of it', async (provider) => {
    const large = '{"id":12345678901234567890,"sum":0.12345678901234567890,"none":null}';
    await send(provider, turnsOf([call('a', 'weather', large)], [result('a', 'sun')]));
    expect(sent().replaceAll('\\', '')).toContain(large);
  });

  it.each([
    ['{"city"', { _invalid: '{"city"' }],
    ['[1]', { _invalid: '[1]' }],
    ['x “y”', { _invalid: 'x “y”' }],
    ['null', {}],
    ['"{\\"city\\":\\"Bern\\"}"', { city: 'Bern' }],
  ])(
    'a call whose arguments are %j, no object -> is sent as one, and to openai as it is',
    async (json, object) => {
      const turns = turnsOf([call('a', 'weather', json)], [result('a', 'Not valid.')]);
      const contentOf = async (provider: ProviderId) => {
        const [message] = await send(provider, turns);
        return message?.content ?? message?.parts;
      };
      expect(await contentOf('anthropic')).toEqual([use('a', 'weather', object)]);
      expect(await contentOf('bedrock')).toEqual([converseUse('a', 'weather', object)]);
      expect(await contentOf('vertexai')).toEqual([functionCall(skip, 'weather', object)]);
      const [message] = await send('openai', turns);
      expect(message).toMatchObject({ tool_calls: [wireCall('a', 'weather', json)] });
    },
  );

  const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  it.each<[content: string, response: object, isError?: true]>([
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
  ])('vertexai is sent a result of %.20s -> an object (%#)', async (content, response, isError) => {
    const contents = await send('vertexai', turnsOf([call('a')], [result('a', content, isError)]));
    expect(contents.at(-1)).toEqual({
      role: 'user',
      parts: [{ functionResponse: { name: 'weather', response } }],
    });
  });
});
