import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ignoredFieldsOf } from '../../../../api/chat-apis/openai-chat/completion-request.js';
import { toOpenAiError } from '../../../../api/chat-apis/openai-chat/openai-error.js';
import { type ProviderId, providerIds } from '../../../../shared/contracts/contract.js';
import { partsOf, type Turn } from '../../../../shared/conversation.js';
import { Failure } from '../../../../shared/failures.js';
import { readBody, refusalOf } from '../../../support/completion-bodies.js';

const user = { role: 'user', content: 'Hello' };
const tool = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } });
const tools = [tool('weather')];
const withTools = (fields: object) => ({ tools, ...fields });
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const format = (json_schema?: unknown) => ({ response_format: { type: 'json_schema', json_schema } });
const letters = 'must be 1 to 64 letters, digits, underscores and hyphens';

describe('tools and formats', () => {
  const weather = { tools: [{ name: 'weather' }] };
  const all = { description: 'Says a.', parameters, strict: true };
  const none = { description: null, parameters: null, strict: null };
  const ofX = { name: 'x', schema: parameters };

  it.each<[object, object]>([
    [{ tools }, weather],
    [{ tools: [tool('a', all)] }, { tools: [{ name: 'a', ...all }] }],
    [{ tools: [tool('a', none)] }, { tools: [{ name: 'a' }] }],
    ...['auto', 'none', 'required'].map((choice): [object, object] => [
      { tools, tool_choice: choice },
      { ...weather, toolChoice: choice },
    ]),
    [withTools({ tool_choice: tool('weather') }), { ...weather, toolChoice: { name: 'weather' } }],
    [withTools({ parallel_tool_calls: false }), { ...weather, parallelToolCalls: false }],
    [{ tools, parallel_tool_calls: true }, weather],
    [{ tools: [], stop: 'x' }, { stop: ['x'] }],
    [format({ ...ofX, strict: true }), { format: { type: 'json_schema', ...ofX, strict: true } }],
    [format({ ...ofX, description: 'A.' }), { format: { type: 'json_schema', ...ofX, description: 'A.' } }],
    [{ response_format: { type: 'json_object' } }, { format: { type: 'json_object' } }],
  ])('are asked for as %j → the model is asked for %j', (fields, expected) => {
    expect(readBody(fields).parameters).toEqual(expected);
  });

  it('have odd names in their schemas → the schemas are kept as they were sent', () => {
    const text = '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{}}}';
    const [read] = readBody({ tools: [tool('a', { parameters: JSON.parse(text) })] }).parameters?.tools ?? [];
    expect(JSON.stringify(read?.parameters)).toBe(text);
  });

  const unknown = 'is not the name of one of the tools';
  const elsewhere = { $ref: 'https://example.com/x' };
  it.each<[object, string]>([
    [{ tools: 'x' }, '/tools must be an array'],
    [{ tools: ['x'] }, '/tools/0 must be an object'],
    [{ tools: Array(129).fill(tool('a')) }, '/tools must have at most 128 tools'],
    [{ tools: [{ type: 'custom' }] }, '/tools/0/type must be function: custom is not supported'],
    [{ tools: [{ type: 'secret' }] }, '/tools/0/type must be function'],
    [{ tools: [{ type: 'function' }] }, '/tools/0/function is required'],
    [{ tools: [tool('')] }, `/tools/0/function/name ${letters}`],
    [{ tools: [tool('a b')] }, `/tools/0/function/name ${letters}`],
    [{ tools: [tool('x'.repeat(65))] }, `/tools/0/function/name ${letters}`],
    [{ tools: [tool('a'), tool('a')] }, '/tools/1/function/name is the name of another tool'],
    [{ tools: [tool('a', { parameters: [] })] }, '/tools/0/function/parameters must be an object'],
    [{ tools: [tool('a', { strict: 'yes' })] }, '/tools/0/function/strict must be true or false'],
    [{ tools: [tool('a', { description: 5 })] }, '/tools/0/function/description must be a string'],
    [
      { tools: [tool('a', { parameters: elsewhere })] },
      '/tools/0/function/parameters/$ref must refer to a place in the same schema',
    ],
    [{ tools, tool_choice: 'any' }, '/tool_choice must be none, auto, required or a function'],
    ...['allowed_tools', 'custom'].map((type): [object, string] => [
      { tools, tool_choice: { type } },
      `/tool_choice/type must be function: ${type} is not supported`,
    ]),
    [{ tools, tool_choice: tool('clock') }, `/tool_choice/function/name ${unknown}`],
    [{ tool_choice: tool('weather') }, `/tool_choice/function/name ${unknown}`],
    [{ tool_choice: 'required' }, '/tool_choice must be none or auto: there are no tools'],
    [{ tools: [], tool_choice: 'required' }, '/tool_choice must be none or auto: there are no tools'],
    [{ tools, parallel_tool_calls: 1 }, '/parallel_tool_calls must be true or false'],
    [{ response_format: 'json' }, '/response_format must be an object'],
    [{ response_format: { type: 'x' } }, '/response_format/type must be text, json_object or json_schema'],
    [format(), '/response_format/json_schema is required'],
    [format({ name: 'x' }), '/response_format/json_schema/schema must be an object'],
    [format({ name: 'x', schema: true }), '/response_format/json_schema/schema must be an object'],
    [format({ name: 'a b', schema: {} }), `/response_format/json_schema/name ${letters}`],
  ])('are %j → refused: %s', (fields, reason) => {
    for (const provider of providerIds) expect(refusalOf(fields, provider), provider).toBe(reason);
  });

  const map = { type: 'object', additionalProperties: { type: 'string' } };
  const deep = format({ name: 'x', schema: { type: 'object', properties: { 'a/canary': map } } });
  const place = '/response_format/json_schema/schema/properties/a~1canary/additionalProperties';
  const misnamed = 'must begin with a letter or an underscore with this provider';
  it.each<[object, ProviderId, string]>([
    [deep, 'openai', 'taken'],
    [deep, 'anthropic', `${place} must be absent: this provider takes no maps`],
    [deep, 'bedrock', `${place} must be absent: this provider takes no maps`],
    [{ tools: [tool('1st')] }, 'vertexai', `/tools/0/function/name ${misnamed}`],
  ])('are %j, which not every provider can be asked for → with %s: %s', (fields, provider, expected) => {
    expect(refusalOf(fields, provider).slice(0, expected.length)).toBe(expected);
  });

  const long = format({ name: 'x', schema: { type: 'object', properties: { ['x'.repeat(70)]: map } } });
  const untypedTool = tool('a', { strict: true, parameters: { type: 'object', properties: { b: {} } } });
  const inFormat = 'response_format.json_schema.schema.properties';
  it.each<[string, object, ProviderId, string]>([
    ['a map', deep, 'bedrock', `${inFormat}.a~1canary.additionalProperties `],
    ['a tool', { tools: [untypedTool] }, 'anthropic', 'tools[0].function.parameters.properties.b '],
    ['a long name', long, 'bedrock', `${inFormat}.${'x'.repeat(60)}....additionalProperties `],
  ])(
    'cannot be asked for because of %s → the message itself has the place',
    async (_, fields, provider, at) => {
      const refusal = await (async () => readBody(fields, provider))().catch((error) => error);
      expect(toOpenAiError(refusal).error.message.slice(0, at.length)).toBe(at);
    },
  );

  it.each<[ProviderId, string[], string[]]>([
    ['openai', [], []],
    ['anthropic', ['reasoningEffort'], ['response_format.maxLength', 'reasoning_effort']],
    ['bedrock', [], ['parallel_tool_calls', 'response_format.maxLength']],
    ['vertexai', [], ['parallel_tool_calls', 'tools.strict', 'response_format.maxLength']],
  ])('are hints in part → %s, whose model refused %j, ignores %j', (provider, refused, ignored) => {
    const short = format({ name: 'x', schema: { type: 'string', maxLength: 5 } });
    const fields = { tools: [tool('a', { strict: true, parameters })], parallel_tool_calls: false, ...short };
    expect(ignoredFieldsOf(provider, readBody(fields, provider).parameters, refused)).toEqual(ignored);
  });
});

const called = (id: string, more: object = {}, text = '{"x":1}') => ({
  ...{ id, type: 'function', function: { name: 'weather', arguments: text } },
  ...more,
});
const assistant = (...calls: object[]) => ({ role: 'assistant', content: null, tool_calls: calls });
const result = (id: string, content: unknown = 'Sun') => ({ role: 'tool', tool_call_id: id, content });
const text = (said: string) => ({ type: 'text', text: said });
const image = (url: string) => ({ type: 'image_url', image_url: { url } });
const shown = image('https://example.com/a.png');
const ofUser = (...content: object[]) => ({ role: 'user', content });

describe('a conversation with calls or images', () => {
  const turnsOf = (...messages: object[]) => readBody({ messages }).turns;
  const weather = { type: 'tool_call', name: 'weather' };
  const call = (id: string, said = '{"x":1}') => ({ ...weather, id, arguments: said });
  const answer = (callId: string, content = 'Sun') => ({ type: 'tool_result', callId, content });

  it('has the results of a message in any order → they are one turn, in the order of its calls', () => {
    const messages = [
      { ...assistant(called('a'), called('b')), content: 'Look:' },
      result('b', [text('Ra'), text('in')]),
      result('a', ''),
      user,
      { ...assistant(called('c')), content: ' ' },
      { role: 'user', content: ' ' },
      result('c'),
    ];
    expect(turnsOf(user, ...messages)).toEqual([
      user,
      { role: 'assistant', content: [text('Look:'), call('a'), call('b')] },
      { role: 'user', content: [answer('a', ''), answer('b', 'Rain')] },
      user,
      { role: 'assistant', content: [call('c')] },
      { role: 'user', content: [answer('c')] },
    ]);
  });

  it('has what was signed → it goes back, before its call; without a model only what Gemini has signed', () => {
    const google = { thought_signature: 'g' };
    const anthropic = { signed_thinking: '[{}]', model: 'm' };
    const signed = called('a', { extra_content: { google, anthropic, bedrock: null } });
    const other = called('b', { extra_content: { bedrock: { signed_thinking: '[{}]' } } });
    expect(turnsOf(assistant(signed, other), result('a'), result('b'))[0]?.content).toEqual([
      { type: 'opaque', provider: 'anthropic', model: 'm', data: '{}' },
      { type: 'opaque', provider: 'vertexai', data: '{"thoughtSignature":"g","of":"call"}' },
      call('a'),
      call('b'),
    ]);
  });

  it('has blank arguments, as some clients write them → they are {}', () => {
    expect(turnsOf(assistant(called('a', {}, ' ')), result('a'))[0]?.content).toEqual([call('a', '{}')]);
  });

  it.each([
    [String.raw`{"a":"\ud83c"}`, String.raw`{"a":"\ufffd"}`],
    [String.raw`{"\uDF89":"\uD83C\uDF89 \uDF89\uD83C"}`, String.raw`{"\ufffd":"\uD83C\uDF89 \ufffd\ufffd"}`],
    [String.raw`{"é":"\ud83c\ud83c\udf89\u0041"}`, String.raw`{"é":"\ufffd\ud83c\udf89\u0041"}`],
    [String.raw`{"a":"\\ud83c \n"}`, String.raw`{"a":"\\ud83c \n"}`],
    [String.raw`{"a":"\ud83`, String.raw`{"a":"\ud83`],
  ])('has the arguments %s → halves of pairs are U+FFFD: %s', (given, sent) => {
    expect(turnsOf(assistant(called('a', {}, given)), result('a'))[0]?.content).toEqual([call('a', sent)]);
  });

  it.each(['{"city"', '{', '[]', '5', 'null', '"x"', '{"a":1}x', 'none', '{"a":"\\', '{}}'])(
    'has %j for arguments, as a model that was cut or wrong wrote them → they are kept',
    (said) => {
      const messages = [assistant(called('a', {}, said)), result('a', 'Not valid.')];
      expect(turnsOf(...messages)[0]?.content).toEqual([call('a', said)]);
    },
  );

  it('has images of the user → they are parts', () => {
    const png = 'data:image/png;base64,iVBORw0KGgo=';
    const stored = expect.objectContaining({ type: 'image', mediaType: 'image/png', bytes: 8 });
    expect(turnsOf(ofUser(text('Look'), shown, text('')), ofUser(image(png)))).toEqual([
      ofUser(text('Look'), { type: 'image', url: 'https://example.com/a.png' }),
      ofUser(stored),
    ]);
  });

  const [a, b, ab] = [assistant(called('a')), assistant(called('b')), assistant(called('a'), called('b'))];
  const custom = { id: 'a', type: 'custom', custom: { name: 'x', input: 'y' } };
  const named = { id: 'a', type: 'function', function: { name: 'a b', arguments: '{}' } };
  const extra_content = { google: { thought_signature: 'x'.repeat(2_097_153) } };
  const noResult = 'has no result: a message of role tool with its id has to follow';
  const unknownId = 'is not the id of a call in the message before the results';
  const otherCall = 'is the id of another call';
  const noParts = 'content must be a string or an array of parts';
  const noImage = 'content/0/type must be text: images belong to messages of the user';
  const url = 'content/0/image_url/url';
  const schemes = 'must be a data: URL, or an https: URL of a host in ASCII, without a password';
  const noneOfThem = 'is not a PNG, JPEG, WebP or GIF image';
  it.each<[string, object[], string]>([
    ['a result without a call', [user, result('a')], `1/tool_call_id ${unknownId}`],
    ['an unknown id', [a, result('b')], `1/tool_call_id ${unknownId}`],
    ['a result of an earlier call', [a, result('a'), user, result('a')], `3/tool_call_id ${unknownId}`],
    ['two results of a call', [ab, result('a'), result('a')], '2/tool_call_id has a result already'],
    ['no id', [a, { role: 'tool', content: 'x' }], '1/tool_call_id is required'],
    ['a call without a result', [a], `0/tool_calls/0 ${noResult}`],
    ['one of two without a result', [ab, result('a'), user], `0/tool_calls/1 ${noResult}`],
    ['a call before the result of another', [a, b, result('b'), result('a')], `0/tool_calls/0 ${noResult}`],
    [
      'a system message between a call and its result',
      [a, { role: 'system', content: 'x' }, result('a')],
      '1/role must be tool: there are calls before it without results',
    ],
    ['an id twice', [assistant(called('a'), called('a')), result('a')], `0/tool_calls/1/id ${otherCall}`],
    ['an id of an earlier call', [a, result('a'), a, result('a')], `2/tool_calls/0/id ${otherCall}`],
    ['calls of the user', [{ ...a, ...user }], '0/tool_calls belong to messages of the assistant'],
    ['no content, and no calls', [assistant()], `0/${noParts}`],
    ['a result without content', [a, result('a', null)], `1/${noParts}`],
    ['a result with an image', [a, result('a', [shown])], `1/${noImage}`],
    ['an image of the system', [{ role: 'system', content: [shown] }], `0/${noImage}`],
    ['an image of another scheme', [ofUser(image('http://example.com/a.png'))], `0/${url} ${schemes}`],
    ['data that are no image', [ofUser(image('data:image/png;base64,AAAA'))], `0/${url} ${noneOfThem}`],
    ['an image without an address', [ofUser({ type: 'image_url' })], '0/content/0/image_url is required'],
    ['a custom call', [assistant(custom)], '0/tool_calls/0/type custom tools are not supported'],
    ['a name that is none', [assistant(named)], `0/tool_calls/0/function/name ${letters}`],
    [
      'a signature that is too long',
      [assistant(called('a', { extra_content }))],
      '0/tool_calls/0/extra_content/google/thought_signature must be at most 2097152 characters',
    ],
  ])('has %s → refused', (_, messages, reason) => {
    expect(refusalOf({ messages })).toBe(`/messages/${reason}`);
  });

  const first = { ...named, function: { name: '1st', arguments: '{}' } };
  const calledFirst = [ofUser(), assistant(called('x'), first), result('x'), result('a')];
  it.each<[ProviderId, object[], string]>([
    ['openai', calledFirst, 'taken'],
    ['vertexai', calledFirst, '/messages/1/tool_calls/1/function/name must begin with a letter'],
    ['openai', [ofUser(shown)], 'taken'],
    ['bedrock', [ofUser(shown)], '/messages/0/content/0/image_url/url must be a data'],
    ['vertexai', [ofUser(shown)], '/messages/0/content/0/image_url/url must be a data'],
  ])('has what not every provider can be asked → with %s, %j: %s', (provider, messages, expected) => {
    expect(refusalOf({ messages }, provider).slice(0, expected.length)).toBe(expected);
  });
});

describe('any conversation', () => {
  const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(null, undefined, [], {}, '', 0));
  const mostly = <T>(value: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 60, arbitrary: value }, { weight: 1, arbitrary: odd as fc.Arbitrary<unknown> });
  const id = fc.constantFrom('a', 'b', 'c', '', '__proto__');
  const name = fc.constantFrom('weather', 'clock', '1st', 'a b', '');
  const ofCall = fc.record({ name, arguments: mostly(fc.constantFrom('{}', '{"x":[1]}', '', '[')) });
  const oneCall = fc.record(
    { id: mostly(id), type: mostly(fc.constant('function')), function: mostly(ofCall), extra_content: odd },
    { requiredKeys: ['id', 'type', 'function'] },
  );
  const urls = ['https://example.com/x', 'data:,', 'data:x;base64,iVBORw0KGgo=', 'ftp:'];
  const part = fc.constantFrom(text('x'), ...urls.map(image));
  const content = mostly(fc.oneof(fc.constantFrom('x', ' ', null), fc.array(part, { maxLength: 3 })));
  const tool_calls = mostly(fc.array(oneCall, { maxLength: 3 }));
  const message: fc.Arbitrary<object> = fc.oneof(
    fc.record({ role: fc.constantFrom('user', 'system'), content }),
    fc.record({ role: fc.constant('assistant'), content, tool_calls }),
    fc.record({ role: fc.constant('tool'), content, tool_call_id: mostly(id) }),
  );
  /** Calls with their results, which come in any order. */
  const exchange = fc
    .tuple(fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 3 }), fc.boolean())
    .map(([ids, isReversed]) => {
      const results = ids.map((each) => result(each));
      return [assistant(...ids.map((each) => called(each))), ...(isReversed ? results.reverse() : results)];
    });
  const alone = message.map((each) => [each]);
  const some = fc.oneof({ weight: 9, arbitrary: exchange }, { weight: 1, arbitrary: alone });
  const conversation = fc.array(some, { minLength: 1, maxLength: 4 }).map((each) => each.flat());

  it('is read or refused → each call that is read has its result behind it', () => {
    let taken = 0;
    fc.assert(
      fc.property(conversation, fc.constantFrom(...providerIds), (messages, provider) => {
        let asked: ReturnType<typeof readBody>;
        try {
          asked = readBody({ messages }, provider);
        } catch (error) {
          return void expect(error).toBeInstanceOf(Failure);
        }
        taken++;
        const idsOf = ({ content }: Pick<Turn, 'content'>, field: 'id' | 'callId') =>
          partsOf({ content }).flatMap((each) => Object(each)[field] ?? []);
        for (const [place, turn] of asked.turns.entries()) {
          const next = asked.turns[place + 1] ?? { content: '' };
          expect(idsOf(next, 'callId')).toEqual(idsOf(turn, 'id'));
        }
      }),
      { numRuns: 1000 },
    );
    expect(taken).toBeGreaterThan(100);
  });
});
