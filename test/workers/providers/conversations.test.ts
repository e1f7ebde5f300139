import { expect, it } from 'vitest';
import type { ImagePart, Part, Turn } from '../../../shared/conversation.js';
import { markSystem } from '../../../shared/protocol/alternating-turns.js';
import {
  type Api,
  apis,
  call,
  hello,
  opaque,
  raw,
  result,
  said,
  skipped,
  startApis,
  talk,
  turn,
  turnsOf,
  written,
} from '../../support/apis.js';
import { reasoning, thinking } from '../../support/provider-answers.js';
import type { ProviderCommand } from '../../support/replies.js';

/** Turns in, body out: what each API is sent of a conversation. */

const send = await startApis();

type Expected = Turn[] | 'as given';
interface Row extends Partial<Record<Api, Expected>>, Pick<ProviderCommand, 'omits'> {
  turns: Turn[];
  /** The same for several APIs: OpenAI's two, the two with Claude, all five. */
  openai?: Expected;
  claude?: Expected;
  all?: Expected;
  /** The texts that stand apart, where an API has a place for them. */
  system?: string[];
}

const [id41, id64, id65, oddId] = ['i'.repeat(41), 'i'.repeat(64), 'i'.repeat(65), 'call:größe'];
const shortId: string = expect.stringMatching(/^c_[\w-]{22}$/);
/** Calls with these ids, of which the first fails and the second gives blanks. */
const withIds = (ids: string[], blank = ' \n', ...others: string[]) =>
  talk(
    [...others.map(said), ...ids.map((id) => call(id))],
    [...ids.map((id, n) => result(id, ['no', blank][n] ?? '1', n === 0)), ...others.map(said)],
  );

const [brief, festive] = [' Be brief. ', '\uFEFF🎉\r\n'];
const [odd, odder] = ['\u0000\tc 👩🏽‍💻', '\n"a" \\ <b>\u2028'];
const marked = (...texts: string[]) => texts.map((text) => said(markSystem(text)));
const systems = [turn('system', 'a\n'), turn('system', ' b ')];
const manySystems = [...systems, hello, ...systems, ...turnsOf('Hi', 'Go on'), turn('system', 'c')];
const markedSystems = [
  turn('user', [said('Hello'), ...marked('a\n', ' b ')]),
  ...turnsOf('Hi', [said('Go on'), ...marked('c')]),
];
const png: ImagePart = { type: 'image', mediaType: 'image/png', sha256: '', bytes: 3, data: 'AAAA' };
const imageName = (n: number) => `[image ${n} of the results]`;
const linked: Part = { type: 'image', url: 'https://example.org/i' };
const results = (...ids: string[]) => ids.map((id) => result(id));

/** The blocks of Claude's thinking at these places, at both of its providers. */
const blocks = (places: number[], model = 'm') =>
  places.flatMap((n) => [opaque('anthropic', thinking[n], model), opaque('bedrock', reasoning[n], model)]);
const ofClaude = (data: unknown, model?: null) => [
  opaque('anthropic', data, model),
  opaque('bedrock', data, model),
];
const wrong = [{}, 'no JSON', [{ type: 'text', text: 'a' }], [{ ...thinking[0], cache_control: {} }]];

const signature = (of: 'call' | 'text', thoughtSignature: string, model: string | null = 'm') =>
  opaque('vertexai', { thoughtSignature, of }, model, 'block');
const functionCall = (thoughtSignature?: string) =>
  raw({
    functionCall: { name: 'weather', args: { city: 'Bern' } },
    ...(thoughtSignature && { thoughtSignature }),
  });
const signedText = (text: string, thoughtSignature: string) => raw({ text, thoughtSignature });

const encrypted = { summary: [{ type: 'summary_text', text: 'So “ß”\n' }], encrypted_content: 'gAAA==' };
const noReasoning = [
  { ...encrypted, id: 'rs_1' },
  { ...encrypted, encrypted_content: '' },
  [encrypted],
  'no JSON',
];
const start = (phase: string) => opaque('openai', { phase }, 'm', 'start');
const thought = (field: string, text: string, model = 'm') => opaque('openai', { [field]: text }, model);

const rows: Record<string, Row> = {
  'texts of every role -> each byte for byte, in its place, or marked in the turn of the user': {
    turns: [hello, turn('system', brief), ...turnsOf(odd, odder), turn('system', festive)],
    openai: 'as given',
    anthropic: 'as given',
    all: [
      turn('user', [said('Hello'), ...marked(brief)]),
      ...turnsOf(odd, [said(odder), ...marked(festive)]),
    ],
  },
  'system texts alone -> those of the system, and a turn of the user where one is demanded': {
    turns: [turn('system', brief), turn('system', festive)],
    system: [brief, festive],
    openai: 'as given',
    all: [turn('user', 'Continue.')],
  },
  'one system text at the beginning -> that of the system': {
    turns: [turn('system', brief), hello],
    system: [brief],
    openai: 'as given',
    all: [hello],
  },
  'a system text in parts -> one text': {
    turns: [hello, turn('system', [said('a'), said('b')])],
    openai: [hello, turn('system', 'ab')],
    anthropic: [hello, turn('system', 'ab')],
    all: [turn('user', [said('Hello'), ...marked('ab')])],
  },
  'several system texts, at the beginning and in a row -> those of the system, and one message there': {
    turns: manySystems,
    system: ['a\n', ' b '],
    openai: 'as given',
    anthropic: [hello, turn('system', ['a\n', ' b '].map(said)), ...manySystems.slice(5)],
    all: markedSystems,
  },
  'the same, for a model that has refused later ones -> marked in the turn of the user': {
    turns: manySystems,
    omits: new Set(['laterSystem']),
    system: ['a\n', ' b '],
    anthropic: markedSystems,
  },
  'results in another order, and a text between them -> results first, in the order of their calls': {
    turns: talk([call('a'), call('b', 'clock', '{}')], [result('b'), said('And?'), result('a')]),
    openai: 'as given',
    all: talk([call('a'), call('b', 'clock', '{}')], [result('a'), result('b'), said('And?')]),
  },
  'images in results -> in the result, or named there and behind all results': {
    turns: talk(
      [call('a'), call('b')],
      [result('a', [said('See'), png, png]), result('b', [png], true), said('And?')],
    ),
    all: 'as given',
    chat: talk(
      [call('a'), call('b')],
      [
        result('a', `See\n${imageName(1)}\n${imageName(2)}`),
        result('b', imageName(3)),
        ...[1, 2, 3].flatMap((n) => [said(imageName(n)), png]),
        said('And?'),
      ],
    ),
  },
  'ids from elsewhere, failures, and blanks -> ids that it takes, and no blank text': {
    turns: withIds([oddId, id41, id64, id65], ' \n', ' ', ''),
    chat: withIds([oddId, shortId, shortId, shortId], ' \n', ' '),
    responses: withIds([oddId, id41, id64, shortId], ' \n', ' '),
    anthropic: withIds([shortId, id41, id64, id65], '(no output)'),
    bedrock: withIds([shortId, id41, id64, shortId], '(no output)'),
    vertexai: withIds([oddId, id41, id64, id65]),
  },
  'images between texts -> images in their places, and an address where the provider fetches it': {
    turns: talk([said('Hi')], [said('a'), png, linked, said('b')]),
    all: 'as given',
  },
  'the signature of a call without the name of its model -> on the call': {
    turns: talk([said('Look:'), signature('call', 'AAAA', null), call('a'), call('b')], results('a', 'b')),
    vertexai: talk([said('Look:'), functionCall('AAAA'), functionCall()], results('a', 'b')),
  },
  'thinking of which a part is none, or has no model -> none of it': {
    turns: talk(
      [
        ...[...blocks([0]), call('a')],
        ...[...wrong.flatMap((data) => ofClaude(data)), ...ofClaude(thinking[0], null), call('b')],
      ],
      results('a', 'b'),
    ),
    claude: talk([call('a'), call('b')], results('a', 'b')),
  },
  'thinking of its model, of another and of others -> that of its model, in its place': {
    turns: talk(
      [
        ...blocks([1]),
        said('Look:'),
        ...blocks([0], 'n'),
        ...blocks([2]),
        call('a'),
        ...blocks([0]),
        call('b'),
      ],
      results('a', 'b'),
    ),
    openai: talk([said('Look:'), call('a'), call('b')], results('a', 'b')),
    claude: talk(
      [...blocks([1]), said('Look:'), ...blocks([2]), call('a'), ...blocks([0]), call('b')],
      results('a', 'b'),
    ),
  },
  'signatures of texts and calls, in their places -> each on its part': {
    turns: talk(
      [
        ...[said('Look:'), signature('text', 'AAAA'), said('And:'), signature('call', 'BBBB'), call('a')],
        ...[call('b'), signature('text', 'CCCC')],
      ],
      ...[results('a', 'b'), [said('Sun.'), signature('text', 'DDDD'), signature('text', 'EEEE')], 'Thanks'],
    ),
    vertexai: talk(
      [
        signedText('Look:', 'AAAA'),
        said('And:'),
        functionCall('BBBB'),
        functionCall(),
        signedText('', 'CCCC'),
      ],
      ...[results('a', 'b'), [signedText('Sun.', 'DDDD'), signedText('', 'EEEE')], 'Thanks'],
    ),
  },
  'signatures of another model, or that are none -> left out, and the call has the value that skips its check':
    {
      turns: talk([
        ...[said('Look:'), signature('text', 'AAAA', 'n'), signature('text', 'no base64!')],
        ...[signature('call', 'BBBB', 'n'), call('a')],
      ]),
      vertexai: [...talk([said('Look:'), functionCall(skipped)]), turn('user', 'Continue.')],
    },
  'reasoning of OpenAI, and the phase of a text -> in their places, without an id': {
    turns: talk([
      ...[opaque('openai', encrypted), start('commentary'), said('Look:')],
      ...[opaque('openai', { ...encrypted, summary: [] }), call('a'), said('And?')],
    ]),
    responses: talk([
      raw({ type: 'reasoning', ...encrypted }),
      raw({ role: 'assistant', content: 'Look:', phase: 'commentary' }),
      ...[raw({ type: 'reasoning', ...encrypted, summary: [] }), call('a'), said('And?')],
    ]),
  },
  'reasoning of others, in words, or what is none -> left out': {
    turns: talk([
      ...[
        opaque('openai', encrypted, 'n'),
        opaque('openai', encrypted, null),
        opaque('anthropic', encrypted),
      ],
      ...[{ type: 'thinking', text: 'Hm.' } as never, ...noReasoning.map((data) => opaque('openai', data))],
      ...[start('x'), opaque('openai', { phase: 'commentary' }), thought('reasoning_content', 'Hm.')],
      ...[said('Hi'), said('')],
    ]),
    responses: talk([said('Hi')]),
  },
  'the thinking of a model of others -> in its field beside its calls, unless another wrote it': {
    turns: talk(
      ...[[thought('reasoning', 'H'), thought('reasoning', 'm'), call('a')], results('a')],
      ...[[thought('reasoning_content', 'Hm'), call('b')], results('b')],
      ...[
        [thought('reasoning', 'Hm', 'n'), opaque('anthropic', { reasoning: 'Hm' }), call('c')],
        results('c'),
      ],
      ...[[opaque('openai', encrypted), opaque('openai', '7'), call('d')], results('d')],
      [thought('reasoning', 'Hm'), said('Hi')],
    ),
    chat: talk(
      ...[[raw({ reasoning: 'Hm' }), call('a')], results('a')],
      ...[[raw({ reasoning_content: 'Hm' }), call('b')], results('b')],
      ...[[call('c')], results('c'), [call('d')], results('d'), [said('Hi')]],
    ),
  },
  'the same, of a model that has demanded it -> something stands for it wherever it is missing': {
    turns: talk('Hi', 'Go on', [call('a')], results('a'), [thought('reasoning_content', 'Hm'), call('b')]),
    omits: new Set(['reasoningContent']),
    chat: talk(
      ...[
        [said('Hi'), raw({ reasoning_content: ' ' })],
        'Go on',
        [call('a'), raw({ reasoning_content: ' ' })],
      ],
      ...[results('a'), [call('b'), raw({ reasoning_content: 'Hm' })]],
    ),
  },
};

const families: Record<Api, 'openai' | 'claude' | 'all'> = {
  chat: 'openai',
  responses: 'openai',
  anthropic: 'claude',
  bedrock: 'claude',
  vertexai: 'all',
};
const cases = apis.flatMap((api) =>
  Object.entries(rows).flatMap(([given, { turns, omits, ...row }]) => {
    const gets = row[api] ?? row[families[api]] ?? row.all;
    return gets ? [{ api, given, turns, omits, ...row, gets: gets === 'as given' ? turns : gets }] : [];
  }),
);

/** How an API writes the texts of the system, which OpenAI's have among the messages. */
function systemOf(api: Api, texts: string[] | undefined): unknown {
  if (api === 'chat' || api === 'responses' || !texts) return undefined;
  const parts = texts.map((text) => ({ text }));
  if (api === 'vertexai') return expect.objectContaining({ parts });
  if (api === 'bedrock') return parts;
  return texts.length === 1 ? texts[0] : parts.map((part) => ({ type: 'text', ...part }));
}

/** The conversation in a body, by any of its names. */
function turnsIn(body: string): unknown[] {
  const { messages, input = messages, contents = input } = JSON.parse(body);
  return contents;
}
const parameters = { tools: [{ name: 'weather' }] };

it.each(cases)('$api is sent $given', async ({ api, turns, omits, system, gets }) => {
  for (const stream of [false, true]) {
    const body = await send(api, { stream, turns, parameters, omits });
    expect(turnsIn(body)).toEqual(written(api, gets));
    const { system: apart, systemInstruction = apart } = JSON.parse(body);
    expect(systemInstruction).toEqual(systemOf(api, system));
  }
});

it.each(apis)('%s is sent a call with a long number -> each digit of it', async (api) => {
  const large = '{"id":12345678901234567890,"sum":0.12345678901234567890,"none":null}';
  const turns = talk([call('a', 'weather', large)], results('a'));
  for (const stream of [false, true])
    expect((await send(api, { stream, turns, parameters })).replaceAll('\\', '')).toContain(large);
});

it.each([
  ['{"city"', '{"_invalid":"{\\"city\\""}'],
  ['[1]', '{"_invalid":"[1]"}'],
  ['x “y”', '{"_invalid":"x “y”"}'],
  ['null', '{}'],
  ['"{\\"city\\":\\"Bern\\"}"', '{"city":"Bern"}'],
])(
  'a call whose arguments are %j, no object -> is sent as %s, and to OpenAI as it is',
  async (json, object) => {
    const asked = (text: string) => talk([call('a', 'weather', text)], results('a'));
    for (const api of apis) {
      const body = await send(api, { stream: false, turns: asked(json), parameters });
      const text = api === 'chat' || api === 'responses' ? json : object;
      expect(turnsIn(body)).toEqual(written(api, asked(text)));
    }
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
  const turns = talk([call('a')], [result('a', content, isError)]);
  const contents = turnsIn(await send('vertexai', { stream: true, turns, parameters }));
  expect(contents.at(-1)).toEqual({
    role: 'user',
    parts: [{ functionResponse: { name: 'weather', response } }],
  });
});
