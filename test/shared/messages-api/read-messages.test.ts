import { describe, expect, it } from 'vitest';
import type { ImagePart, Turn } from '../../../shared/conversation.js';
import { type ReadMessagesOptions, readMessages } from '../../../shared/messages-api/read-messages.js';
import { toSignature } from '../../../shared/messages-api/signatures.js';
import type { ModelParameters } from '../../../shared/models/model-parameters.js';

/** A body of Anthropic's in; turns, parameters, ignored fields and refusals out, provider by provider. */

const providers = ['openai', 'bedrock', 'vertexai'] as const;
type Pool = (typeof providers)[number];

const png: ImagePart = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 3 };
const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
const said = (text: string, cache?: string) => ({ type: 'text', text, ...(cache && { cache }) });
const block = (text: string, cache_control?: object) => ({
  type: 'text',
  text,
  ...(cache_control && { cache_control }),
});
const mark = { type: 'ephemeral' };
const hourMark = { type: 'ephemeral', ttl: '1h' };
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const system = (content: unknown, more: object = {}) => ({ role: 'system', content, ...more });
const use = (id: string, name = 'read', input: unknown = {}) => ({ type: 'tool_use', id, name, input });
const result = (tool_use_id: string, content?: unknown, more: object = {}) => {
  return { type: 'tool_result', tool_use_id, ...(content !== undefined && { content }), ...more };
};
const refer = (tool_name: string) => ({ type: 'tool_reference', tool_name });
const tool = (name: string, more: object = {}) => ({ name, input_schema: { type: 'object' }, ...more });
const sentTool = (name: string, more: object = {}) => ({ name, parameters: { type: 'object' }, ...more });
const hello = user('Hello');
const called = (content: unknown, id = 'a') => [hello, assistant([use(id)]), user([result(id, content)])];
const thinking = (signature: string) => ({ type: 'thinking', thinking: '', signature });

function read(provider: Pool, body: object, options: Partial<ReadMessagesOptions> = {}) {
  return readMessages(
    { messages: [hello], ...body },
    {
      provider,
      toImage: ({ data }) => (data === 'none' ? undefined : png),
      toText: (value) => JSON.stringify(value),
      ...options,
    },
  );
}

const callPart = (id: string, name = 'read', json = '{}') => ({
  type: 'tool_call',
  id,
  name,
  arguments: json,
});
const resultPart = (callId: string, content: unknown, more: object = {}) => {
  return { type: 'tool_result', callId, content, ...more };
};
const turn = (role: Turn['role'], content: unknown) => ({ role, content }) as Turn;
const greeting = turn('user', 'Hello');
const afterCall = (...parts: unknown[]) => [
  greeting,
  turn('assistant', [callPart('a')]),
  turn('user', parts),
];

type Expected = Partial<Record<Pool | 'all', unknown>>;
const expectedAt = (expected: Expected, provider: Pool) =>
  provider in expected ? expected[provider] : expected.all;

const billing = 'x-anthropic-billing-header: cc_version=2.1.332; cch=1;';
const reminder = (text: string) => `<system-reminder>\n${text}\n</system-reminder>`;

const conversations: Record<string, { body: object; turns: Expected }> = {
  'a text as system -> one turn': {
    body: { system: 'Be brief.' },
    turns: { all: [turn('system', 'Be brief.'), greeting] },
  },
  'blocks of system -> joined, apart with their marks at bedrock; the header for billing stays there': {
    body: { system: [block(billing), block(' '), block('a', mark), block('b', hourMark)] },
    turns: {
      all: [turn('system', 'a\n\nb'), greeting],
      bedrock: [
        turn('system', billing),
        turn('system', [said('a', '5m')]),
        turn('system', [said('b', '1h')]),
        greeting,
      ],
    },
  },
  'a system text later -> in its place, else a part of the turn of the user there': {
    body: { messages: [hello, system('a'), assistant('Hi'), user('Go'), system([block('b')])] },
    turns: {
      openai: [
        greeting,
        turn('system', 'a'),
        turn('assistant', 'Hi'),
        turn('user', 'Go'),
        turn('system', 'b'),
      ],
      all: [
        turn('user', [said('Hello'), said(reminder('a'))]),
        turn('assistant', 'Hi'),
        turn('user', [said('Go'), said(reminder('b'))]),
      ],
    },
  },
  'a system text that is for one turn of the user alone -> gone behind the next': {
    body: {
      messages: [
        hello,
        system('a', { clear_at: 'next_user_message' }),
        assistant('Hi'),
        user('Go'),
        system('b', { clear_at: 'next_user_message' }),
      ],
    },
    turns: {
      openai: [greeting, turn('assistant', 'Hi'), turn('user', 'Go'), turn('system', 'b')],
      all: [greeting, turn('assistant', 'Hi'), turn('user', [said('Go'), said(reminder('b'))])],
    },
  },
  'texts of one message, and messages of one role in a row -> parts of one turn, without blanks': {
    body: { messages: [user([block('a'), block('b')]), user('c'), assistant([block('d'), block('\n')])] },
    turns: { all: [turn('user', [said('a'), said('b'), said('c')]), turn('assistant', 'd')] },
  },
  'calls and results, one of them in a message of its own -> calls and results in one turn each': {
    body: {
      messages: [
        hello,
        assistant([block('I look.'), use('a', 'read', { n: 1 }), use('b')]),
        user([result('b', 'two', { is_error: true })]),
        user([result('a', [block('x'), block('y')]), block('And?')]),
      ],
    },
    turns: {
      all: [
        greeting,
        turn('assistant', [said('I look.'), callPart('a', 'read', '{"n":1}'), callPart('b')]),
        turn('user', [resultPart('b', 'two', { isError: true }), resultPart('a', 'x\ny'), said('And?')]),
      ],
    },
  },
  'a result without content -> an empty one': {
    body: { messages: called(undefined) },
    turns: { all: afterCall(resultPart('a', '')) },
  },
  'pictures, of the user and in results -> images, in the result as well': {
    body: { messages: [...called([block('See'), picture, block(' ')]), user([picture])] },
    turns: { all: afterCall(resultPart('a', [said('See'), png]), png) },
  },
  'marks on texts, pictures, calls, results, within results and on the body -> kept for bedrock alone': {
    body: {
      cache_control: hourMark,
      messages: [
        user([block('Hello', mark), { ...picture, cache_control: mark }]),
        assistant([{ ...use('a'), cache_control: hourMark }, use('b')]),
        user([result('a', 'x', { cache_control: mark }), result('b', [block('y', hourMark)]), block('Go')]),
      ],
    },
    turns: {
      bedrock: [
        turn('user', [said('Hello', '5m'), { ...png, cache: '5m' }]),
        turn('assistant', [{ ...callPart('a'), cache: '1h' }, callPart('b')]),
        turn('user', [
          resultPart('a', 'x', { cache: '5m' }),
          resultPart('b', 'y', { cache: '1h' }),
          said('Go', '1h'),
        ]),
      ],
      all: [
        turn('user', [said('Hello'), png]),
        turn('assistant', [callPart('a'), callPart('b')]),
        turn('user', [resultPart('a', 'x'), resultPart('b', 'y'), said('Go')]),
      ],
    },
  },
  "thinking of Anthropic's -> dropped, with a reply of nothing else": {
    body: {
      messages: [
        hello,
        assistant([thinking('EqQB.x'), { type: 'redacted_thinking', data: 'x' }]),
        user('Go'),
        assistant([thinking(''), block('Hi')]),
      ],
    },
    turns: { all: [turn('user', [said('Hello'), said('Go')]), turn('assistant', 'Hi')] },
  },
};

describe('the turns of a body', () => {
  it.each(Object.entries(conversations))('%s', (_, { body, turns }) => {
    for (const provider of providers) {
      const { turns: found, refusal } = read(provider, body);
      expect([provider, refusal, found]).toEqual([provider, undefined, expectedAt(turns, provider)]);
    }
  });

  it("thinking that is a provider's own -> opaque parts in their places, for that provider", () => {
    const data = {
      openai: '{"summary":[],"encrypted_content":"gAAA=="}',
      bedrock: '{"reasoningText":{"text":"So","signature":"s"}}',
      vertexai: '{"thoughtSignature":"aa==","of":"call"}',
    };
    const blocks = providers.map((provider) =>
      thinking(toSignature({ provider, model: 'm.1/x', data: data[provider] })),
    );
    const messages = [hello, assistant([...blocks, use('a')]), user([result('a', 'x')])];
    for (const provider of providers) {
      const part = { type: 'opaque', provider, model: 'm.1/x', data: data[provider] };
      const { turns } = read(provider, { messages });
      expect(turns[1]).toEqual(turn('assistant', [part, callPart('a')]));
    }
  });
});

const long = 'mcp__a-server-with-a-long-name__and_a_tool_with_a_longer_one_still';
const [longSent, oddSent] = [`${long.slice(0, 51)}_`, 'größe.x'.replace(/[^a-z]/g, '_')];

describe('the tools of a body', () => {
  const namesAfter = (body: object, provider: Pool = 'openai') =>
    read(provider, body).parameters.tools?.map(({ name }) => name);

  it('odd and long names -> short ones that are told, in tools, calls and the choice', () => {
    const names = [long, 'größe.x', '1st', 'fine'];
    const messages = [hello, assistant([use('a', long)]), user([result('a')])];
    const body = {
      tools: names.map((name) => tool(name)),
      tool_choice: { type: 'tool', name: long },
      messages,
    };
    for (const provider of providers) {
      const { parameters, toolNames, turns } = read(provider, body);
      const sent = parameters.tools?.map(({ name }) => name) ?? [];
      expect(sent.map((name) => toolNames.get(name) ?? name)).toEqual(names);
      expect(sent).toEqual([
        expect.stringMatching(new RegExp(`^${longSent}[\\w-]{12}$`)),
        expect.stringMatching(new RegExp(`^${oddSent}_[\\w-]{12}$`)),
        provider === 'vertexai' ? expect.stringMatching(/^_st_[\w-]{12}$/) : '1st',
        'fine',
      ]);
      expect(parameters.toolChoice).toEqual({ name: sent[0] });
      expect(turns[1]?.content).toEqual([callPart('a', sent[0])]);
    }
  });

  it('a name that is the short one of another -> refused', () => {
    const [sent] = namesAfter({ tools: [tool(long)] }) ?? [];
    const { refusal } = read('openai', { tools: [tool(long), tool(`${sent}`)] });
    expect(refusal?.pointer).toBe('/tools/1/name');
  });

  it('descriptions, strict ones and marks -> as they are, the marks for bedrock alone', () => {
    const tools = [tool('a', { type: 'custom', description: 'A', strict: true, cache_control: hourMark })];
    const sent = sentTool('a', { description: 'A', strict: true });
    expect(providers.map((provider) => read(provider, { tools }).parameters.tools)).toEqual([
      [sent],
      [{ ...sent, cache: '1h' }],
      [sent],
    ]);
  });

  it('deferred ones -> offered from a reference on, behind the others, and described once', () => {
    const deferred = tool('late', { defer_loading: true, description: 'Comes late.' });
    const tools = [deferred, tool('read'), tool('never', { defer_loading: true })];
    expect(namesAfter({ tools })).toEqual(['read']);
    const messages = [
      ...called([refer('late')]),
      assistant([use('b')]),
      user([result('b', [refer('late'), block('and so on')])]),
    ];
    const { turns } = read('vertexai', { tools, messages });
    expect(namesAfter({ tools, messages })).toEqual(['read', 'late']);
    expect(turns[2]?.content).toEqual([resultPart('a', 'late\nComes late.\n{"type":"object"}')]);
    expect(turns[4]?.content).toEqual([resultPart('b', 'late\nand so on')]);
  });

  it('ones that system turns add, define and remove -> those at the end, and no text for it', () => {
    const change = (type: string, changed: object) => system([{ type, tool: changed }]);
    const named = (name: string) => ({ type: 'tool_reference', name });
    const definition = { type: 'tool_definition', definition: tool('new') };
    const tools = [tool('a'), tool('b'), tool('c', { defer_loading: true })];
    const messages = [
      hello,
      change('tool_removal', named('a')),
      change('tool_addition', named('c')),
      change('tool_addition', definition),
      change('tool_removal', named('c')),
    ];
    expect(namesAfter({ tools, messages })).toEqual(['b', 'new']);
    expect(read('bedrock', { tools, messages }).turns).toEqual([greeting]);
  });
});

const tools = [tool('a')];
const schema = { type: 'object', properties: { a: { type: 'string' } } };
const format = { type: 'json_schema', schema };
const sentFormat = { type: 'json_schema', name: 'response', schema };

const turnedOff = (type: string): [object, Expected, Expected] => [
  { thinking: { type }, output_config: { effort: 'low' } },
  {
    openai: { reasoningEffort: 'none' },
    bedrock: { reasoningEffort: 'low' },
    vertexai: { reasoningEffort: 'minimal' },
  },
  { bedrock: ['thinking'] },
];

/** Fields of the body, the parameters but for tools, and the names of what is ignored; `claude` is one at Bedrock. */
const settings: Record<string, [body: object, parameters: Expected, ignored?: Expected]> = {
  nothing: [{}, { all: {} }],
  sampling: [
    { temperature: 0.5, top_p: 0.9, top_k: 4 },
    { openai: { temperature: 0.5, topP: 0.9 }, all: { temperature: 0.5, topP: 0.9, topK: 4 } },
    { openai: ['top_k'] },
  ],
  'texts to stop at': [{ stop_sequences: ['a', 'b'] }, { all: { stop: ['a', 'b'] } }],
  'no texts to stop at, and nulls': [
    { stop_sequences: [], thinking: null, tools: null, tool_choice: null, output_config: null, system: null },
    { all: {} },
  ],
  'an effort, and thinking as much as it wants': [
    { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'max' } },
    {
      openai: { reasoningEffort: 'max' },
      bedrock: { reasoningEffort: 'max', thinking: 'adaptive' },
      vertexai: { reasoningEffort: 'high' },
    },
  ],
  'the effort of a later system turn': [
    {
      output_config: { effort: 'high' },
      messages: [
        hello,
        ...['low', 'medium'].map((effort) => system('a', { output_config: { effort } })),
        system('b'),
      ],
    },
    { all: { reasoningEffort: 'medium' } },
  ],
  'thinking that is disabled': turnedOff('disabled'),
  'thinking between calls alone': turnedOff('between_tools'),
  'a budget': [
    { thinking: { type: 'enabled', budget_tokens: 9000 } },
    { bedrock: { reasoningEffort: 'high', thinking: 9000 }, all: { reasoningEffort: 'high' } },
  ],
  'any tool, one at a time': [
    { tools, tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    { all: { toolChoice: 'required', parallelToolCalls: false } },
    {
      bedrock: ['tool_choice.disable_parallel_tool_use'],
      vertexai: ['tool_choice.disable_parallel_tool_use'],
    },
  ],
  'no tool': [{ tools, tool_choice: { type: 'none' } }, { all: { toolChoice: 'none' } }],
  'a choice without tools': [{ tool_choice: { type: 'auto', disable_parallel_tool_use: true } }, { all: {} }],
  'a format': [{ output_config: { format } }, { all: { format: sentFormat } }],
  'a format by its older name': [{ output_format: format }, { all: { format: sentFormat } }],
  'what else tunes or is unknown, but for nulls': [
    {
      context_management: { edits: [] },
      metadata: { user_id: 'u' },
      speed: null,
      thinking: { type: 'adaptive', block_binding: {} },
      output_config: { task_budget: { total: 1 } },
      tools: [tool('a', { input_examples: [{}], eager_input_streaming: true })],
      messages: [
        { ...hello, x: 1 },
        assistant([{ ...use('a'), caller: { type: 'direct' } }]),
        user([result('a', 'x', { toolset_name: 't' })]),
      ],
    },
    { bedrock: { thinking: 'adaptive' }, all: {} },
    {
      all: [
        ...['context_management', 'metadata', 'thinking.block_binding', 'output_config.task_budget'],
        ...[
          'tools.input_examples',
          'tools.eager_input_streaming',
          'messages.x',
          'messages.content.toolset_name',
        ],
      ],
    },
  ],
  'marks of the cache': [
    { cache_control: mark, system: [block('a', mark)], messages: [user([block('b', mark)])] },
    { all: {} },
    { bedrock: [], all: ['cache_control', 'system.cache_control', 'messages.content.cache_control'] },
  ],
};

describe('the parameters of a body', () => {
  it.each(Object.entries(settings))('%s', (_, [body, parameters, ignored = {}]) => {
    for (const provider of providers) {
      const { parameters: found, ignored: names, refusal } = read(provider, body);
      const { tools: _tools, ...others } = found as ModelParameters;
      expect([provider, refusal, others]).toEqual([provider, undefined, expectedAt(parameters, provider)]);
      const expected = (expectedAt(ignored, provider) ?? []) as string[];
      expect([provider, names.toSorted()]).toEqual([provider, expected.toSorted()]);
    }
  });

  it.each([
    [2048, 'low'],
    [2049, 'medium'],
    [8192, 'medium'],
    [32_000, 'high'],
    [32_001, 'xhigh'],
  ])('a budget of %i -> the effort %s, the highest that vertexai has at most', (budget_tokens, effort) => {
    const found = providers.map(
      (provider) =>
        read(provider, { thinking: { type: 'enabled', budget_tokens } }).parameters.reasoningEffort,
    );
    expect(found).toEqual([effort, effort, effort === 'xhigh' ? 'high' : effort]);
  });

  it('those of Claude for another model at bedrock -> ignored, and what says the same elsewhere stays', () => {
    const body = { top_k: 4, thinking: { type: 'enabled', budget_tokens: 9000 } };
    const { parameters, ignored } = read('bedrock', body, { model: 'amazon.nova-pro-v1:0' });
    expect([parameters, ignored]).toEqual([{ reasoningEffort: 'high' }, ['top_k']]);
    expect(read('bedrock', body, { model: 'us.anthropic.claude-opus-5' }).parameters.topK).toBe(4);
  });
});

const inMessage = (...blocks: unknown[]) => ({ messages: [user(blocks)] });
const many = (amount: number, of = (n: number): unknown => tool(`t${n}`)) =>
  Array.from({ length: amount }, (_, n) => of(n));

const replied = (...blocks: unknown[]) => ({ messages: [hello, assistant(blocks)] });
const behind = (content: unknown, ...messages: unknown[]) => ({
  messages: [...called(content), ...messages],
});
const asked = (...messages: unknown[]) => ({ messages: [hello, assistant([use('a')]), ...messages] });
const [first, second] = ['/messages/0/content/0', '/messages/1/content/0'];
const imageOf = (source: object) => inMessage({ type: 'image', source });
const [typed, odd] = [{ type: 'advisor_20260301', name: 'advisor' }, tool('a', { type: '<b>' })];
const elsewhere = tool('late', { defer_loading: true, input_schema: { $ref: 'http://x/~' } });

/** Bodies that are refused, the place, and a part of the detail. */
const refusals: [body: object, pointer: string, detail: string][] = [
  [{ tools: [tool('a'), typed] }, '/tools/1/type', "Input tag 'advisor_20260301'"],
  [{ tools: [odd] }, '/tools/0/type', 'must be custom'],
  [inMessage({ type: 'document', source: {} }), `${first}/type`, 'document is not supported'],
  [inMessage({ type: 'search_result' }), `${first}/type`, 'search_result is not supported'],
  [behind([{ type: 'document' }]), '/messages/2/content/0/content/0/type', 'document is not supported'],
  [replied({ type: 'server_tool_use' }), `${second}/type`, 'server_tool_use is not supported'],
  [inMessage({ ...block('a'), citations: [{}] }), `${first}/citations`, 'not supported'],
  [{ mcp_servers: [{ url: 'x' }] }, '/mcp_servers', 'not supported'],
  [{ safeguards: {} }, '/safeguards', 'not supported'],
  [imageOf({ type: 'file', file_id: 'f' }), `${first}/source/type`, 'file is not supported'],
  [imageOf({ ...picture.source, data: 'none' }), `${first}/source`, 'is not an image'],
  [replied(picture), `${second}/type`, 'image is not supported'],
  [{ tools: many(129) }, '/tools', 'at most 128'],
  [{ tools: [tool('a'), tool('a')] }, '/tools/1/name', 'another tool'],
  [{ tools: [{ name: 'a', input_schema: [] }] }, '/tools/0/input_schema', 'must be an object'],
  [{ tools: [tool('a', { input_schema: deep(40) })] }, '/tools/0/input_schema', 'nested'],
  [
    { ...behind([refer('late')]), tools: [elsewhere, tool('a')] },
    '/tools/0/input_schema/$ref',
    'same schema',
  ],
  [{ stop_sequences: ['1', '2', '3', '4', '5'] }, '/stop_sequences', 'at most 4'],
  [{ output_config: { effort: 'turbo' } }, '/output_config/effort', 'one of'],
  [{ thinking: { type: 'deep' } }, '/thinking/type', 'deep is not supported'],
  [{ tools, tool_choice: { type: 'tool', name: 'b' } }, '/tool_choice/name', 'one of the tools'],
  [{ tool_choice: { type: 'any' } }, '/tool_choice', 'no tools'],
  [behind([refer('x')]), '/messages/2/content/0/content/0/tool_name', 'name of a tool'],
  [
    { messages: [hello, system([{ type: 'tool_removal', tool: { type: 'tool_reference', name: 'x' } }])] },
    `${second}/tool/name`,
    'name of a tool',
  ],
  [asked(user('b')), second, 'no result'],
  [asked(user('b'), assistant('c')), second, 'no result'],
  [asked(system('b')), second, 'no result'],
  [inMessage(result('a')), `${first}/tool_use_id`, 'not the id of a call'],
  [behind('x', user([result('a')])), '/messages/3/content/0/tool_use_id', 'not the id of a call'],
  [behind('x', assistant([use('a')])), '/messages/3/content/0/id', 'another call'],
  [{ system: 'a', messages: [user(' \n')] }, '/messages', 'says something'],
  [{ messages: [{ role: 'tool', content: 'a' }] }, '/messages/0/role', 'must be user'],
  [{ messages: [null] }, '/messages/0', 'must be an object'],
  [{ messages: [user(1)] }, '/messages/0/content', 'must be an array'],
  [{ messages: [{ role: 'user' }] }, '/messages/0/content', 'is required'],
  [{ cache_control: 'ephemeral' }, '/cache_control', 'must be an object'],
  [replied(use('a', 'read', 'x')), `${second}/input`, 'an object'],
];

function deep(levels: number): object {
  return levels === 0 ? {} : { not: deep(levels - 1) };
}

describe('what a provider cannot do', () => {
  it.each(refusals)('%.60j -> refused at %s: %s', (body, pointer, detail) => {
    for (const provider of providers) {
      const { refusal, ...others } = read(provider, body);
      expect([provider, refusal?.pointer]).toEqual([provider, pointer]);
      expect(refusal?.detail).toContain(detail);
      expect(others).toEqual({ turns: [], parameters: {}, ignored: [], toolNames: new Map() });
    }
  });

  it.each([undefined, null, 1, 'a', [], [1], { messages: 1 }, { messages: [[]] }])(
    '%j -> refused',
    (body) => {
      const options = { provider: 'openai', toImage: () => png, toText: String } as const;
      expect(readMessages(body, options).refusal).toBeDefined();
    },
  );

  it('an address of a picture -> refused where the provider fetches none, or the host is private', () => {
    const at = (url: string) => inMessage({ type: 'image', source: { type: 'url', url } });
    const found = providers.map((provider) => read(provider, at('https://example.org/i')).refusal?.pointer);
    expect(found).toEqual([
      undefined,
      '/messages/0/content/0/source/type',
      '/messages/0/content/0/source/type',
    ]);
    expect(read('openai', at('https://10.0.0.1/')).refusal?.pointer).toBe('/messages/0/content/0/source');
  });

  it('a schema that only one provider takes -> refused at its place', () => {
    const [map, tuple] = [{ additionalProperties: { type: 'string' } }, { anyOf: [schema] }];
    const pointers = (body: object) => providers.map((provider) => read(provider, body).refusal?.pointer);
    const inFormat = {
      output_config: { format: { type: 'json_schema', schema: { type: 'object', ...map } } },
    };
    expect(pointers(inFormat)).toEqual([
      undefined,
      '/output_config/format/schema/additionalProperties',
      undefined,
    ]);
    expect(pointers({ tools: [tool('a', { input_schema: tuple })] })).toEqual([
      undefined,
      '/tools/0/input_schema/anyOf',
      undefined,
    ]);
  });
});

describe('a hostile body', () => {
  it('keys of __proto__ -> change nothing, and arguments keep theirs', () => {
    const body = JSON.parse(
      '{"__proto__":{"system":"x"},"messages":[{"__proto__":{"a":1},"role":"user","content":"Hello"}]}',
    );
    expect(read('openai', body)).toMatchObject({
      turns: [greeting],
      ignored: ['messages.__proto__', '__proto__'],
    });
    const input = JSON.parse('{"__proto__":{"a":1}}');
    const { turns } = read('openai', {
      messages: [hello, assistant([use('a', '__proto__', input)]), user([result('a')])],
    });
    expect(turns[1]?.content).toEqual([callPart('a', '__proto__', '{"__proto__":{"a":1}}')]);
  });

  it('many references, signatures, names and keys -> read in time that grows with the body', () => {
    const large = tool('late', { defer_loading: true, description: 'x'.repeat(100_000) });
    const references = many(10_000, () => refer('late'));
    const { turns } = read('openai', { tools: [large], messages: called(references) });
    expect(JSON.stringify(turns).length).toBeLessThan(200_000);
    const signature = toSignature({
      provider: 'openai',
      model: 'm',
      data: `{"a":[${'[],'.repeat(6000)}[]]}`,
    });
    const messages = [hello, assistant([thinking(signature), thinking(signature), block('a')])];
    expect(read('openai', { messages }).refusal?.pointer).toBe('/messages/1/content/1/signature');
    const keys = Object.fromEntries(many(20_000, (n) => [`<${n}>`, 1]) as [string, number][]);
    expect(read('openai', keys).ignored).toEqual([]);
  });
});
