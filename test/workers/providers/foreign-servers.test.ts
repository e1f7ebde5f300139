import type { ServerResponse } from 'node:http';
import { OpenAI } from 'openai';
import { describe, expect, it } from 'vitest';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { chatCompletions } from '../../../workers/providers/openai/chat-completions.js';
import {
  type PlayedAnswer,
  startPlaying,
  toServerSentEvent,
  withEvent,
} from '../../support/playing-provider.js';
import {
  anthropic,
  bedrock,
  converseUsed,
  openai,
  plain,
  saying,
  usage,
  vertexai,
} from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

/** Answers of servers that speak OpenAI's or Anthropic's protocol, and are others. */

const { play } = await startPlaying();
const stream = true;

const hello = openai({ content: 'Hello' }, [{ content: 'Hel' }, { content: 'lo' }], 'stop');
const helloAnthropic = saying.anthropic(['Hel', 'lo'], 'end_turn');
const helloVertexAi = vertexai([[{ text: 'Hello' }]]);

/** The events of Anthropic's answer with other fields in the one that says why it ends. */
const endingAs = ({ events }: PlayedAnswer, fields: object): PlayedAnswer['events'] =>
  events.map(([name, data]) => [name, name === 'message_delta' ? { ...Object(data), ...fields } : data]);

describe('an event without a part of the reply', () => {
  const passedOver = {
    openai: [
      ...['null', '', ' ', '{}', '{"choices":null}', '{"choices":[]}', '{"choices":[null]}'],
      ...['{"choices":[{}]}', '{"choices":[{"delta":null,"finish_reason":null}]}'],
      ...['{"type":"keepalive"}', '{"usage":null}'],
      '{"choices":[{"delta":{"content":null,"tool_calls":null}}],"usage":{}}',
    ],
    anthropic: [
      ...['null', '', '{}', '{"type":"ping"}', '{"type":"content_block_delta","index":0,"delta":null}'],
      ...['{"type":"vendor_event","vendor":1}', '{"type":"content_block_start","content_block":null}'],
      '{"type":"content_block_start","index":5,"content_block":{"type":"text","text":null}}',
      '{"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":null,"signature":null}}',
      '{"type":"content_block_delta","index":5,"delta":{"type":"thinking_delta","thinking":null}}',
    ],
  };
  it.each([
    ...passedOver.openai.map((data) => ['openai', data, withEvent(hello, '', data)] as const),
    ...passedOver.anthropic.map(
      (data) => ['anthropic', data, withEvent(helloAnthropic, 'ping', data)] as const,
    ),
  ])('from the side of %s that is %j -> is passed over', async (provider, _, answer) => {
    expect(await play(provider, answer, { stream })).toMatchObject({ text: 'Hello', reason: 'stop', usage });
  });

  it('that has token counts alone, without choices -> they count', async () => {
    const [said, ended] = [hello.events.slice(0, 3), hello.events.slice(3)];
    const counts = ended.map(([name, data]): [string, object] => [name, { usage: Object(data).usage }]);
    const reply = await play('openai', { whole: '', events: [...said, ...counts] }, { stream });
    expect(reply).toMatchObject({ text: 'Hello', usage });
  });

  it.each<[ProviderId, string, PlayedAnswer]>([
    ['anthropic', 'event: ping\ndata: {"type":"ping"}\n\n', helloAnthropic],
    ['openai', ': keepalive\n\n', hello],
    ['vertexai', ': keepalive\n\n', helloVertexAi],
  ])('of %s that is %j, before anything is said -> is a sign of life', async (id, sign, { events }) => {
    const alive = Promise.withResolvers<void>();
    const end = async (response: ServerResponse) => {
      response.write(sign);
      await alive.promise;
      response.end(events.map(toServerSentEvent).join(''));
    };
    const reply = await play(id, { whole: '', events: [], end }, { stream, onLife: alive.resolve });
    expect(reply).toMatchObject({ text: 'Hello', reason: 'stop' });
  });

  it('that names itself in its `event` field alone -> is read by that', async () => {
    const events = helloAnthropic.events.map(([name, data]): [string, object] => [
      name,
      { ...Object(data), type: undefined },
    ]);
    expect(await play('anthropic', { whole: '', events }, { stream })).toMatchObject({ text: 'Hello' });
  });

  it.each(['7', '"x"', '[]', '{"choices":7}', '{"choices":[{"delta":{"content":7}}]}', '<html>'])(
    'that is %s, in the middle of a reply -> fails it: a part may be lost',
    async (data) => {
      const broken = play('openai', withEvent(hello, '', data), { stream });
      await expect(broken).rejects.toMatchObject({ code: 'provider_error', retryable: true });
    },
  );
});

const large = '{"id":12345678901234567890,"sum":0.12345678901234567890,"none":null}';

/** An answer of each provider with one call, whose arguments are this JSON. */
const calling: Record<ProviderId, (json: string) => PlayedAnswer> = {
  openai: (json) => {
    const called = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":${json}}}]}`;
    return {
      whole: `{"choices":[{"message":${called},"finish_reason":"stop"}]}`,
      events: [
        ['', `{"choices":[{"delta":${called}}]}`],
        ['', { choices: [{ delta: {}, finish_reason: 'stop' }] }],
      ],
    };
  },
  anthropic: (json) => {
    const block = `{"type":"tool_use","id":"a","name":"f","input":${json}}`;
    const begun = `{"type":"content_block_start","index":0,"content_block":${block}}`;
    return anthropic({ blocks: [block], pieces: [['content_block_start', begun]] });
  },
  bedrock: (json) =>
    bedrock({
      blocks: [`{"toolUse":{"toolUseId":"a","name":"f","input":${json}}}`],
      pieces: converseUsed(0, 'a', 'f', json),
    }),
  vertexai: (json) => vertexai([[{ functionCall: { id: 'a', name: 'f', args: JSON.parse(json) } }]]),
};

describe.each(replyModes)('the arguments of a call in a $mode reply', ({ stream }) => {
  const parameters = { tools: [{ name: 'f' }] };
  const encoded = JSON.stringify('{"x":1}');

  it.each<[ProviderId, json: string, gives: string]>([
    ['openai', '{"x":1}', '{"x":1}'],
    ['openai', large, large],
    ['openai', 'null', '{}'],
    ['anthropic', large, large],
    ['anthropic', 'null', '{}'],
    ['anthropic', encoded, '{"x":1}'],
    ['bedrock', large, large],
    ['bedrock', 'null', '{}'],
    ['bedrock', encoded, '{"x":1}'],
    ['vertexai', 'null', '{}'],
    ['vertexai', encoded, '{"x":1}'],
  ])('are %s’s %s -> they are an object', async (provider, json, gives) => {
    const { calls } = await play(provider, calling[provider](json), { stream, parameters });
    expect(calls).toEqual([['a', 'f', gives]]);
  });

  it.each<[ProviderId, json: string]>([
    ['openai', '[1]'],
    ['vertexai', '[1]'],
  ])('are %s’s %s -> the reply is none', async (provider, json) => {
    const broken = play(provider, calling[provider](json), { stream, parameters });
    await expect(broken).rejects.toMatchObject({ cause: { word: 'malformed_arguments' } });
  });
});

const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };

/** An answer of OpenAI's side that ends so, with errors that are null, as some servers write them. */
const ending = (finish_reason: unknown, message: object = { content: 'Hello' }): PlayedAnswer => ({
  whole: JSON.stringify({ error: null, choices: [{ message, finish_reason, error: null }] }),
  events: [
    ['', { error: null, choices: [{ delta: message, error: null }] }],
    ['', { choices: [{ delta: {}, finish_reason }] }],
    ['', '[DONE]'],
  ],
});

describe.each(replyModes)('the end of a $mode reply', ({ stream }) => {
  const parameters = { tools: [{ name: 'f' }] };

  it.each([
    ...[undefined, null, '', 'eos', 'eos_token', 'end_turn', 'STOP', 'Stop', 'stop_sequence'],
    'function_call',
  ])('is said as %j -> it is a usual end', async (word) => {
    expect(await play('openai', ending(word), { stream })).toMatchObject({ text: 'Hello', reason: 'stop' });
    const calling = ending(word, { content: null, tool_calls: [call] });
    const reply = await play('openai', calling, { stream, parameters });
    expect(reply).toMatchObject({ calls: [['a', 'f', '{"x":1}']], reason: 'stop' });
  });

  it.each([
    [null, 'unfinished'],
    ['', 'unfinished'],
    ['a new word', 'unknown_end'],
  ])('is said as %j behind nothing -> the reply is none: %s', async (word, none) => {
    const silent = play('openai', ending(word, { content: '' }), { stream });
    await expect(silent).rejects.toMatchObject({ retryable: true, cause: { word: none } });
  });

  it('is not said behind a refusal -> the reply is blocked', async () => {
    const refused = ending(null, { content: null, refusal: 'No.' });
    expect(await play('openai', refused, { stream })).toMatchObject({ reason: 'blocked', text: '' });
  });

  it.each([undefined, null, ''])('is %j from a relay of Anthropic -> it is usual', async (stop_reason) => {
    const answer = plain.anthropic();
    const whole = JSON.stringify({ ...JSON.parse(answer.whole), stop_reason });
    const reply = await play(
      'anthropic',
      { whole, events: endingAs(answer, { delta: { stop_reason } }) },
      { stream },
    );
    expect(reply).toMatchObject({ text: '{}', reason: 'stop' });
  });
});

it('a stream with a chunk that says something else, and without a reason -> that may be what went wrong', async () => {
  const [said = ['', ''], ...rest] = ending(null).events;
  const odd: PlayedAnswer = { whole: '', events: [said, ['', { detail: 'out of memory' }], ...rest] };
  await expect(play('openai', odd, { stream })).rejects.toMatchObject({ cause: { word: 'unfinished' } });
});

describe('the calls of a stream of OpenAI’s side', () => {
  const parameters = { tools: [{ name: 'f' }, { name: 'g' }] };
  const begin = (index: number | undefined, id: string | undefined, name: string | undefined, json = '') => ({
    index,
    id,
    function: { name, arguments: json },
  });
  const piece = (index: number, json: string, id?: string) => begin(index, id, undefined, json);
  const [x, y] = ['{"x":1}', '{"y":2}'];
  const both = {
    calls: [
      ['a', 'f', x],
      ['b', 'g', y],
    ],
    reason: 'stop',
  };
  const own = expect.stringMatching(/^call_/);

  /** Each in a chunk of its own. */
  const apart = (...pieces: object[]) => pieces.map((each) => [each]);

  /** A stream with these calls in its deltas. */
  const answer = (...deltas: object[][]) => {
    const said = deltas.map((calls) => ({ tool_calls: calls }));
    return play('openai', openai({}, said), { stream, parameters });
  };

  it.each<[given: string, deltas: object[][]]>([
    [
      'come in turns',
      apart(
        ...[begin(0, 'a', 'f'), begin(1, 'b', 'g')],
        ...[piece(0, '{"x"'), piece(1, '{"y"'), piece(0, ':1}'), piece(1, ':2}')],
      ),
    ],
    [
      'have its name again in each piece, and all the index 0',
      apart(begin(0, 'a', 'f', '{"x"'), begin(0, 'a', 'f', ':1}'), begin(0, 'b', 'g', y)),
    ],
    ['come in one chunk', [[begin(0, 'a', 'f', x), begin(1, 'b', 'g', y)]]],
    ['come in one chunk without indexes', [[begin(undefined, 'a', 'f', x), begin(undefined, 'b', 'g', y)]]],
    ['come one by one without indexes', apart(begin(undefined, 'a', 'f', x), begin(undefined, 'b', 'g', y))],
    [
      'all have the index 0, and come in turns by their ids',
      apart(begin(0, 'a', 'f'), begin(0, 'b', 'g'), piece(0, x, 'a'), piece(0, y, 'b')),
    ],
    [
      'have another id with each piece',
      apart(begin(0, 'a', 'f'), piece(0, x, 'c'), begin(1, 'b', 'g'), piece(1, y, 'd')),
    ],
  ])('%s -> each is whole', async (_, pieces) => {
    expect(await answer(...pieces)).toMatchObject(both);
  });

  it('have neither ids nor indexes of their own -> another name begins the next one', async () => {
    const { calls } = await answer(...apart(begin(0, undefined, 'f'), begin(0, undefined, 'g'), piece(0, y)));
    expect(calls).toEqual([
      [own, 'f', '{}'],
      [own, 'g', y],
    ]);
  });
});

describe.each(replyModes)('the thinking of a foreign model in a $mode reply', ({ stream }) => {
  const parameters = { tools: [{ name: 'f' }] };
  const own = { kind: 'opaque', provider: 'openai', model: 'm', role: 'block' };
  const calls = [{ index: 0, ...call }];

  /** A reply that thinks in this field, says something and calls a tool. */
  const answer = (field: string) =>
    openai({ [field]: 'Hm. So.', content: 'Look:', tool_calls: [call] }, [
      ...[['Hm.', null] as const, [' So.', ''] as const, [null, 'Look:'] as const].map(
        ([thought, content]) => ({ [field]: thought, content }),
      ),
      { tool_calls: calls },
    ]);

  it.each(['reasoning', 'reasoning_content'])(
    'comes as `%s` -> is no text, and is kept before it',
    async (field) => {
      const plainly = await play('openai', answer(field), { stream, parameters });
      expect([plainly.text, plainly.marks?.map(({ kind }) => kind)]).toEqual(['Look:', ['call']]);
      const kept = await play('openai', answer(field), { stream, parameters, reasoning: 'opaque' });
      const data = JSON.stringify({ [field]: 'Hm. So.' });
      expect(kept).toMatchObject({
        text: 'Look:',
        marks: [{ ...own, at: 0, length: data.length }, { kind: 'text' }, { kind: 'call' }],
      });
      const shown = await play('openai', answer(field), { stream, parameters, reasoning: 'shown' });
      expect(shown.marks?.map(({ kind }) => kind)).toEqual(['thinking', 'opaque', 'text', 'call']);
      if (stream) expect(shown.deltas.join('')).toBe(`Hm. So.${data}Look:{"x":1}`);
    },
  );

  it.each([7, { text: 'Hm.' }, ['Hm.'], ''])('is %j -> is passed over', async (thinking) => {
    const said = { reasoning: thinking, reasoning_content: thinking, content: 'Hello' };
    const reply = await play('openai', openai(said, [said], 'stop'), { stream, reasoning: 'shown' });
    expect([reply.text, reply.marks]).toEqual(['Hello', undefined]);
  });

  it('is longer than what is kept of a reply -> the reply is given without it', async () => {
    const long = 'x'.repeat(600_000);
    const deltas = [{ reasoning: long }, { reasoning: long }, { content: 'Hello' }];
    const whole = openai({ reasoning: long + long, content: 'Hello' }, deltas, 'stop');
    const reply = await play('openai', whole, { stream, reasoning: 'opaque' });
    expect([reply.text, reply.marks]).toEqual(['Hello', undefined]);
  });
});

const all = { max_completion_tokens: 9, store: false, safety_identifier: 'a-hash', prompt_cache_key: 'k' };
it.each([
  ['https://api.openai.com/v1', all],
  ['https://name.openai.azure.com/openai/v1', all],
  ['https://name.openai.azure.com/openai/deployments/d', { max_completion_tokens: 9 }],
  ['http://127.0.0.1:8000/v1', { max_tokens: 9 }],
])(
  'a completion is asked for at %s -> what it says of its limit and its user, and about being kept and cached: %j',
  async (baseURL, says) => {
    for (const isStreamed of [false, true]) {
      const bodies: object[] = [];
      const fetch: typeof globalThis.fetch = async (_, init) => {
        const { model, messages, stream, stream_options, ...says } = JSON.parse(String(init?.body));
        bodies.push(says);
        throw new Error('enough');
      };
      const client = new OpenAI({ apiKey: 'test-key', baseURL, fetch, maxRetries: 0 });
      const { signal } = new AbortController();
      const parts = chatCompletions(
        client,
        { model: 'm', turns: [], maxOutputTokens: 9, signal, user: 'a-hash', cacheKey: 'k' },
        isStreamed,
      );
      await expect(parts.next()).rejects.toThrow();
      expect(bodies).toEqual([says]);
    }
  },
);

it.each<[ProviderId, PlayedAnswer]>([
  ['openai', hello],
  ['anthropic', helloAnthropic],
])('%s gives a whole answer where a stream was asked for -> it is read', async (id, answer) => {
  const end = (response: ServerResponse) => void response.end(answer.whole);
  const reply = await play(id, { ...answer, events: [], end }, { stream });
  expect(reply).toMatchObject({ text: 'Hello', reason: 'stop', usage });
});

it('a stream ends with all of the message -> it is read where nothing was said, and once', async () => {
  const choices = [{ message: { content: 'Hello' }, finish_reason: 'stop' }];
  for (const before of [[], hello.events.slice(0, 2)]) {
    const events: PlayedAnswer['events'] = [...before, ['', { choices }]];
    expect(await play('openai', { whole: '', events }, { stream })).toMatchObject({ text: 'Hello' });
  }
});

describe.each(replyModes)('content in parts, in a $mode reply', ({ stream }) => {
  it('is thinking and a text, as at Mistral -> each is read', async () => {
    const thought = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] };
    const said = { type: 'text', text: 'Hello' };
    const pieces = [{ content: [thought] }, { content: [said] }];
    const answer = openai({ content: [thought, said] }, pieces, 'stop');
    const reply = await play('openai', answer, { stream, reasoning: 'shown' });
    expect(reply.pieces).toMatchObject([
      { kind: 'thinking', text: 'Hm.' },
      { kind: 'text', text: 'Hello' },
    ]);
  });
});

describe('a sign of life of OpenAI’s side', () => {
  it.each([
    ['ping', '2026-11-28T16:00:00Z'],
    ['ping', '1732800000'],
    ['', '""'],
    ['', 'ping'],
    ['', ': keepalive'],
    ['heartbeat', '{"time":1}'],
    ['', '{"type":"ping","time":1}'],
  ])('is %j with %j -> is passed over, also before an end without a reason', async (name, data) => {
    const reply = await play('openai', withEvent(ending(null), name, data), { stream });
    expect(reply).toMatchObject({ text: 'Hello', reason: 'stop' });
  });
});

describe('token counts', () => {
  const none = { prompt_tokens: 0, completion_tokens: 0, prompt_tokens_details: null };
  it.each([none, { prompt_tokens: null, completion_tokens: null }])(
    'are %j behind those that count, and before -> those count',
    async (zeros) => {
      const amongZeros = (answer: PlayedAnswer) =>
        play('openai', withEvent(answer, '', JSON.stringify({ usage: zeros })), { stream });
      expect(await amongZeros(hello)).toMatchObject({ text: 'Hello', usage });
      expect((await amongZeros(ending('stop'))).usage).toBeUndefined();
    },
  );

  it('are zeros in the last event of a relay of Anthropic -> those of the first count', async () => {
    const events = endingAs(helloAnthropic, { usage: { input_tokens: 0, output_tokens: 7 } });
    expect(await play('anthropic', { whole: '', events }, { stream })).toMatchObject({ usage });
  });

  it.each([
    ['openai.gpt-5.6', 12_401, 12_401],
    ['us.openai.gpt-5.6', 12_401, 12_401],
    ['openai.gpt-5.6', 2, 12_401],
    ['anthropic.claude-opus-4', 2, 12_401],
    ['arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4', 12_401, 24_800],
  ])('of %s at Bedrock are %i with those of the cache -> %i', async (model, inputTokens, gives) => {
    const counts = { inputTokens, outputTokens: 7, cacheReadInputTokens: 8367, cacheWriteInputTokens: 4032 };
    const message = { content: [{ text: 'Hello' }] };
    const whole = JSON.stringify({ output: { message }, stopReason: 'end_turn', usage: counts });
    const reply = await play('bedrock', { whole, events: [] }, { stream: false, model });
    expect(reply.usage?.inputTokens).toBe(gives);
  });
});
