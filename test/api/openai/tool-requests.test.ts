import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCompletionBody } from '../../../api/openai/completion-body.js';
import { ignoredFieldsOf, toCompletionRequest } from '../../../api/openai/completion-request.js';
import { RequestImages } from '../../../api/openai/images.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';

const user = { role: 'user', content: 'Hello' };

function read(fields: object, provider: ProviderId = 'openai') {
  const body = parseCompletionBody({ model: `${provider}/m`, messages: [user], ...fields }, 5000);
  return toCompletionRequest(body, undefined, new RequestImages(1000));
}

/** The first error, as `pointer detail`. */
function refusal(fields: object, provider: ProviderId = 'openai'): string {
  try {
    read(fields, provider);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const [first] = error.facts.errors ?? [];
    return `${first?.pointer} ${first?.detail}`;
  }
  return 'taken';
}

const tool = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } });
const tools = [tool('weather')];
const parameters = { type: 'object', properties: { city: { type: 'string' } } };

describe('tools', () => {
  it.each<[object, object]>([
    [{ tools }, { tools: [{ name: 'weather' }] }],
    [
      { tools: [tool('a', { description: 'Says a.', parameters, strict: true })] },
      { tools: [{ name: 'a', description: 'Says a.', parameters, strict: true }] },
    ],
    [
      { tools: [tool('a', { description: null, parameters: null, strict: null })] },
      { tools: [{ name: 'a' }] },
    ],
    [
      { tools, tool_choice: 'auto' },
      { tools: [{ name: 'weather' }], toolChoice: 'auto' },
    ],
    [
      { tools, tool_choice: 'none' },
      { tools: [{ name: 'weather' }], toolChoice: 'none' },
    ],
    [
      { tools, tool_choice: 'required' },
      { tools: [{ name: 'weather' }], toolChoice: 'required' },
    ],
    [
      { tools, tool_choice: tool('weather') },
      { tools: [{ name: 'weather' }], toolChoice: { name: 'weather' } },
    ],
    [
      { tools, parallel_tool_calls: false },
      { tools: [{ name: 'weather' }], parallelToolCalls: false },
    ],
    [{ tools, parallel_tool_calls: true }, { tools: [{ name: 'weather' }] }],
    [
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'x', schema: parameters, strict: true },
        },
      },
      { format: { type: 'json_schema', name: 'x', schema: parameters, strict: true } },
    ],
    [
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'x', schema: parameters, description: 'A.' },
        },
      },
      { format: { type: 'json_schema', name: 'x', schema: parameters, description: 'A.' } },
    ],
    [{ response_format: { type: 'json_object' } }, { format: { type: 'json_object' } }],
  ])('of %j are %j', (fields, expected) => {
    expect(read(fields).parameters).toEqual(expected);
  });

  it('keep a schema as it was sent, whatever its names are', () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{}}}',
    );
    const [read0] = read({ tools: [tool('a', { parameters: schema })] }).parameters?.tools ?? [];
    expect(JSON.stringify(read0?.parameters)).toBe(JSON.stringify(schema));
  });

  const letters = 'must be 1 to 64 letters, digits, underscores and hyphens';
  const format = (json_schema: unknown) => ({ response_format: { type: 'json_schema', json_schema } });
  it.each<[object, string]>([
    [{ tools: 'x' }, '/tools must be an array'],
    [{ tools: ['x'] }, '/tools/0 must be an object'],
    [{ tools: Array(129).fill(tool('a')) }, '/tools must have at most 128 tools'],
    [
      { tools: [{ type: 'custom', custom: { name: 'x' } }] },
      '/tools/0/type must be function: custom is not supported',
    ],
    [{ tools: [{ type: 'secret' }] }, '/tools/0/type must be function'],
    [{ tools: [{ type: 'function' }] }, '/tools/0/function must be an object'],
    [{ tools: [tool('')] }, `/tools/0/function/name ${letters}`],
    [{ tools: [tool('a b')] }, `/tools/0/function/name ${letters}`],
    [{ tools: [tool('x'.repeat(65))] }, `/tools/0/function/name ${letters}`],
    [{ tools: [tool('a'), tool('a')] }, '/tools/1/function/name is the name of another tool'],
    [{ tools: [tool('a', { parameters: [] })] }, '/tools/0/function/parameters must be an object'],
    [{ tools: [tool('a', { strict: 'yes' })] }, '/tools/0/function/strict must be true or false'],
    [{ tools: [tool('a', { description: 5 })] }, '/tools/0/function/description must be a string'],
    [
      { tools: [tool('a', { parameters: { $ref: 'https://example.com/x' } })] },
      '/tools/0/function/parameters/$ref must refer to a place in the same schema',
    ],
    [{ tools, tool_choice: 'any' }, '/tool_choice must be none, auto, required or a function'],
    [
      { tools, tool_choice: { type: 'allowed_tools', allowed_tools: {} } },
      '/tool_choice/type must be function: allowed_tools is not supported',
    ],
    [
      { tools, tool_choice: { type: 'custom', custom: {} } },
      '/tool_choice/type must be function: custom is not supported',
    ],
    [{ tools, tool_choice: tool('clock') }, '/tool_choice/function/name is not the name of one of the tools'],
    [{ tool_choice: tool('weather') }, '/tool_choice/function/name is not the name of one of the tools'],
    [{ tool_choice: 'required' }, '/tool_choice must be none or auto: there are no tools'],
    [{ tools: [], tool_choice: 'required' }, '/tool_choice must be none or auto: there are no tools'],
    [{ tools, parallel_tool_calls: 1 }, '/parallel_tool_calls must be true or false'],
    [{ response_format: 'json' }, '/response_format must be an object'],
    [
      { response_format: { type: 'grammar' } },
      '/response_format/type must be text, json_object or json_schema',
    ],
    [format(undefined), '/response_format/json_schema must be an object'],
    [format({ name: 'x' }), '/response_format/json_schema/schema must be an object'],
    [format({ name: 'x', schema: true }), '/response_format/json_schema/schema must be an object'],
    [format({ name: 'a b', schema: {} }), `/response_format/json_schema/name ${letters}`],
  ])('are refused: %j', (fields, reason) => {
    for (const provider of providerIds)
      expect(refusal(fields, provider).replace('must be an object', 'is required'), provider).toBe(
        reason.replace('must be an object', 'is required'),
      );
  });

  it('of which a provider cannot be asked for one are refused with the place, and no word of the caller’s in the text', () => {
    const map = { type: 'object', additionalProperties: { type: 'string' } };
    const schema = { type: 'object', properties: { 'a/canary': map } };
    const fields = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } };
    expect(refusal(fields)).toBe('taken');
    const pointer =
      '/response_format/json_schema/schema/properties/a~1canary/additionalProperties must be absent: this provider takes no maps';
    for (const provider of ['anthropic', 'bedrock'] as const) {
      expect(refusal(fields, provider)).toBe(pointer);
      expect(() => read(fields, provider)).toThrow(
        expect.objectContaining({
          facts: expect.objectContaining({ detail: expect.not.stringContaining('canary') }),
        }),
      );
      expect(refusal({ response_format: { type: 'json_object' } }, provider)).toMatch(
        /^\/response_format is not/,
      );
    }
    const misnamed = 'must begin with a letter or an underscore with this provider';
    expect(() => read({ tools: [tool('1st')] }, 'vertexai')).toThrow(
      expect.objectContaining({
        facts: { errors: [{ pointer: '/tools/0/function/name', detail: misnamed }] },
      }),
    );
  });

  it('and formats have hints, which are named where they are ignored', () => {
    const fields = {
      ...{ tools: [tool('a', { strict: true, parameters })], parallel_tool_calls: false },
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'string', maxLength: 5 } },
      },
    };
    const ignored = (provider: ProviderId, refused?: string[]) =>
      ignoredFieldsOf(provider, read(fields, provider).parameters, refused);
    expect(ignored('openai')).toEqual([]);
    expect(ignored('anthropic', ['reasoningEffort'])).toEqual([
      'response_format.maxLength',
      'reasoning_effort',
    ]);
    expect(ignored('bedrock')).toEqual(['parallel_tool_calls', 'response_format.maxLength']);
    expect(ignored('vertexai')).toEqual(['parallel_tool_calls', 'tools.strict', 'response_format.maxLength']);
  });
});

const called = (id: string, more: object = {}, text = '{"x":1}') => ({
  ...{ id, type: 'function', function: { name: 'weather', arguments: text } },
  ...more,
});
const assistant = (...calls: object[]) => ({ role: 'assistant', content: null, tool_calls: calls });
const result = (id: string, content: unknown = 'Sun') => ({ role: 'tool', tool_call_id: id, content });
const callPart = (id: string, text = '{"x":1}') => ({
  ...{ type: 'tool_call', id, name: 'weather' },
  arguments: text,
});
const resultPart = (callId: string, content = 'Sun') => ({ type: 'tool_result', callId, content });

describe('a conversation with calls', () => {
  const turnsOf = (...messages: object[]) => read({ messages }).turns;

  it('has the results of a message in one turn, in the order of its calls', () => {
    expect(
      turnsOf(
        user,
        { ...assistant(called('a'), called('b')), content: 'Look:' },
        result('b', [
          { type: 'text', text: 'Ra' },
          { type: 'text', text: 'in' },
        ]),
        result('a', ''),
        user,
        { ...assistant(called('c')), content: ' ' },
        { role: 'user', content: ' ' },
        result('c'),
      ),
    ).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: [{ type: 'text', text: 'Look:' }, callPart('a'), callPart('b')] },
      { role: 'user', content: [resultPart('a', ''), resultPart('b', 'Rain')] },
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: [callPart('c')] },
      { role: 'user', content: [resultPart('c')] },
    ]);
  });

  it('takes back what was signed, before its call', () => {
    const signed = called('a', {
      extra_content: {
        google: { thought_signature: 'g' },
        anthropic: { signed_thinking: '[]' },
        bedrock: null,
      },
    });
    const other = called('b', { extra_content: { bedrock: { signed_thinking: 'b' } } });
    expect(turnsOf(assistant(signed, other), result('a'), result('b'))[0]?.content).toEqual([
      { type: 'opaque', provider: 'anthropic', data: '[]' },
      { type: 'opaque', provider: 'vertexai', data: 'g' },
      callPart('a'),
      { type: 'opaque', provider: 'bedrock', data: 'b' },
      callPart('b'),
    ]);
  });

  it('has {} for arguments that are blank, as some clients write them', () => {
    expect(turnsOf(assistant(called('a', {}, ' ')), result('a'))[0]?.content).toEqual([callPart('a', '{}')]);
  });

  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  it('has images in messages of the user', () => {
    const png = 'data:image/png;base64,iVBORw0KGgo=';
    const content = [
      { type: 'text', text: 'Look' },
      image('https://example.com/a.png'),
      { type: 'text', text: '' },
    ];
    expect(turnsOf({ role: 'user', content }, { role: 'user', content: [image(png)] })).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image', url: 'https://example.com/a.png' },
        ],
      },
      {
        role: 'user',
        content: [expect.objectContaining({ type: 'image', mediaType: 'image/png', bytes: 8 })],
      },
    ]);
  });

  const noResult = 'has no result: a message of role tool with its id has to follow';
  const unknownId = 'is not the id of a call in the message before the results';
  it.each<[string, object[], string]>([
    ['a result without a call', [user, result('a')], `/messages/1/tool_call_id ${unknownId}`],
    ['an unknown id', [assistant(called('a')), result('b')], `/messages/1/tool_call_id ${unknownId}`],
    [
      'a result of an earlier call',
      [assistant(called('a')), result('a'), user, result('a')],
      `/messages/3/tool_call_id ${unknownId}`,
    ],
    [
      'two results of a call',
      [assistant(called('a'), called('b')), result('a'), result('a')],
      '/messages/2/tool_call_id has a result already',
    ],
    [
      'no id',
      [assistant(called('a')), { role: 'tool', content: 'x' }],
      '/messages/1/tool_call_id is required',
    ],
    ['a call without a result', [assistant(called('a'))], `/messages/0/tool_calls/0 ${noResult}`],
    [
      'a call without a result among others',
      [assistant(called('a'), called('b')), result('a'), user],
      `/messages/0/tool_calls/1 ${noResult}`,
    ],
    [
      'a call before the next one has its result',
      [assistant(called('a')), assistant(called('b')), result('b'), result('a')],
      `/messages/0/tool_calls/0 ${noResult}`,
    ],
    [
      'a system message between a call and its result',
      [assistant(called('a')), { role: 'system', content: 'x' }, result('a')],
      '/messages/1/role must be tool: there are calls before it without results',
    ],
    [
      'an id twice in a message',
      [assistant(called('a'), called('a')), result('a')],
      '/messages/0/tool_calls/1/id is the id of another call',
    ],
    [
      'an id of an earlier call',
      [assistant(called('a')), result('a'), assistant(called('a')), result('a')],
      '/messages/2/tool_calls/0/id is the id of another call',
    ],
    [
      'calls of the user',
      [{ role: 'user', content: 'x', tool_calls: [called('a')] }],
      '/messages/0/tool_calls belong to messages of the assistant',
    ],
    [
      'no content, and no calls',
      [{ role: 'assistant', content: null, tool_calls: [] }],
      '/messages/0/content must be a string or an array of parts',
    ],
    [
      'a result without content',
      [assistant(called('a')), result('a', null)],
      '/messages/1/content must be a string or an array of parts',
    ],
    [
      'a result with an image',
      [assistant(called('a')), result('a', [image('https://example.com/a.png')])],
      '/messages/1/content/0/type must be text: images belong to messages of the user',
    ],
    [
      'an image of the system',
      [{ role: 'system', content: [image('https://example.com/a.png')] }],
      '/messages/0/content/0/type must be text: images belong to messages of the user',
    ],
    [
      'an image of another scheme',
      [{ role: 'user', content: [image('http://example.com/a.png')] }],
      '/messages/0/content/0/image_url/url must be a data: URL, or an https: URL with a host in ASCII',
    ],
    [
      'data that are no image',
      [{ role: 'user', content: [image('data:image/png;base64,AAAA')] }],
      '/messages/0/content/0/image_url/url is not a PNG, JPEG, WebP or GIF image',
    ],
    [
      'an image without an address',
      [{ role: 'user', content: [{ type: 'image_url' }] }],
      '/messages/0/content/0/image_url is required',
    ],
    [
      'a custom call',
      [assistant({ id: 'a', type: 'custom', custom: { name: 'x', input: 'y' } })],
      '/messages/0/tool_calls/0/type custom tools are not supported',
    ],
    [
      'a name that is none',
      [assistant({ id: 'a', type: 'function', function: { name: 'a b', arguments: '{}' } })],
      '/messages/0/tool_calls/0/function/name must be 1 to 64 letters, digits, underscores and hyphens',
    ],
    [
      'a signature that is too long',
      [assistant(called('a', { extra_content: { google: { thought_signature: 'x'.repeat(48_001) } } }))],
      '/messages/0/tool_calls/0/extra_content/google/thought_signature must be at most 48000 characters long',
    ],
    ...['', '{', '[]', '5', 'null', '"x"', '{"a":1}x']
      .slice(1)
      .map((text): [string, object[], string] => [
        `arguments such as ${text}`,
        [assistant(called('a', {}, text)), result('a')],
        '/messages/0/tool_calls/0/function/arguments must be the JSON text of an object',
      ]),
  ])('is refused for %s', (_, messages, reason) => {
    expect(refusal({ messages })).toBe(reason);
  });

  it('is refused where its provider cannot be asked, with the place', () => {
    const first = { id: 'a', type: 'function', function: { name: '1st', arguments: '{}' } };
    const messages = [
      { role: 'user', content: ' ' },
      assistant(called('x'), first),
      result('x'),
      result('a'),
    ];
    expect(refusal({ messages })).toBe('taken');
    expect(refusal({ messages }, 'vertexai')).toBe(
      '/messages/1/tool_calls/1/function/name must begin with a letter or an underscore with this provider',
    );
    const seen = [{ role: 'user', content: [image('https://example.com/a.png')] }];
    for (const provider of ['bedrock', 'vertexai'] as const)
      expect(refusal({ messages: seen }, provider)).toMatch(
        /^\/messages\/0\/content\/0\/image_url\/url must be a data/,
      );
  });
});

describe('any request with tools', () => {
  const id = fc.constantFrom('a', 'b', 'c', '', '__proto__');
  const name = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom('weather', 'clock') },
    { weight: 1, arbitrary: fc.constantFrom('1st', 'a b', '') },
  );
  const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(null, undefined, [], {}, '', 0));
  const mostly = <T>(value: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 60, arbitrary: value }, { weight: 1, arbitrary: odd as fc.Arbitrary<unknown> });
  const schema = fc.oneof(
    fc.constant(parameters),
    fc.constantFrom(
      {},
      { $ref: '#' },
      { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
      { oneOf: [] },
    ),
    fc.dictionary(fc.constantFrom('type', 'properties', 'anyOf', '$ref', 'enum', 'x'), fc.jsonValue()),
  );
  const oneTool = fc.record({
    type: mostly(fc.constant('function')),
    function: mostly(
      fc.record(
        { name, parameters: mostly(schema), strict: mostly(fc.boolean()) },
        { requiredKeys: ['name'] },
      ),
    ),
  });
  const oneCall = fc.record(
    {
      id: mostly(id),
      type: mostly(fc.constant('function')),
      function: mostly(
        fc.record({ name, arguments: mostly(fc.constantFrom('{}', '{"x":[1]}', '', '[', '{"a":')) }),
      ),
      extra_content: odd,
    },
    { requiredKeys: ['id', 'type', 'function'] },
  );
  const part = fc.oneof(
    fc.constant({ type: 'text', text: 'x' }),
    fc.constantFrom('https://example.com/x', 'data:,', 'data:x;base64,iVBORw0KGgo=', 'ftp:').map((url) => ({
      ...{ type: 'image_url', image_url: { url } },
    })),
  );
  const content = mostly(fc.oneof(fc.constantFrom('x', ' ', null), fc.array(part, { maxLength: 3 })));
  const message = fc.oneof(
    fc.record({ role: fc.constantFrom('user', 'system'), content }),
    fc.record({
      role: fc.constant('assistant'),
      content,
      tool_calls: mostly(fc.array(oneCall, { maxLength: 3 })),
    }),
    fc.record({ role: fc.constant('tool'), content, tool_call_id: mostly(id) }),
  );
  /** Calls with their results, which come in any order. */
  const exchange = fc
    .tuple(fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 3 }), fc.boolean())
    .map(([ids, isReversed]) => {
      const results = ids.map((each) => result(each));
      return [assistant(...ids.map((each) => called(each))), ...(isReversed ? results.reverse() : results)];
    });
  const messages = fc
    .array(
      fc.oneof(
        { weight: 9, arbitrary: exchange },
        { weight: 1, arbitrary: message.map((each) => [each as object]) },
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((some) => some.flat());
  const body = fc.record(
    {
      messages,
      tools: mostly(fc.array(oneTool, { maxLength: 3 })),
      tool_choice: mostly(
        fc.oneof(
          fc.constantFrom('auto', 'none', 'required'),
          name.map((chosen) => tool(chosen)),
        ),
      ),
      parallel_tool_calls: mostly(fc.boolean()),
      response_format: mostly(
        fc.oneof(
          fc.constantFrom({ type: 'text' }, { type: 'json_object' }),
          schema.map((each) => ({ type: 'json_schema', json_schema: { name: 'x', schema: each } })),
        ),
      ),
    },
    { requiredKeys: ['messages'] },
  );

  it('is read or refused, and each call that is read has its result behind it', () => {
    let taken = 0;
    fc.assert(
      fc.property(body, fc.constantFrom(...providerIds), (fields, provider) => {
        let asked: ReturnType<typeof read>;
        try {
          asked = read(fields, provider);
        } catch (error) {
          expect(error).toBeInstanceOf(Failure);
          return;
        }
        taken++;
        for (const [place, { content: said }] of asked.turns.entries()) {
          const calls = typeof said === 'string' ? [] : said.filter(({ type }) => type === 'tool_call');
          const next = asked.turns[place + 1]?.content ?? '';
          const results = typeof next === 'string' ? [] : next.filter(({ type }) => type === 'tool_result');
          expect(results.map((each) => 'callId' in each && each.callId)).toEqual(
            calls.map((each) => 'id' in each && each.id),
          );
        }
        expect(asked.parameters?.tools?.length).not.toBe(0);
        // None of the hints of a provider that can be asked may fail.
        ignoredFieldsOf(provider, asked.parameters);
      }),
      { numRuns: 3000 },
    );
    expect(taken).toBeGreaterThan(100);
  });
});
