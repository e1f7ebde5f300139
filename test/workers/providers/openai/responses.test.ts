import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { piecesOf } from '../../../../shared/protocol/parts.js';
import { heldTimeouts } from '../../../support/held-timeouts.js';
import { type PlayedAnswer, startPlaying, withEvent } from '../../../support/playing-provider.js';
import { replyModes } from '../../../support/providers.js';
import type { ProviderCommand } from '../../../support/replies.js';

const { play: playAs, sent } = await startPlaying('openai by responses');
const play = (answer: PlayedAnswer, asked: Omit<ProviderCommand, 'model'>) => playAs('openai', answer, asked);

type Item = Record<string, unknown>;
type Events = PlayedAnswer['events'];

const counts = {
  ...{ input_tokens: 15, output_tokens: 7, total_tokens: 22 },
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens_details: { reasoning_tokens: 3 },
};
const usage = { inputTokens: 15, outputTokens: 7, cachedTokens: 4, cacheWriteTokens: 2, reasoningTokens: 3 };

/** An event as OpenAI writes it, with its type twice. */
const event = (type: string, fields: object): Events[number] => [type, { type, ...fields }];

/** A response with these items, which came in a stream by these events; `end` has what it ends with. */
function response(output: Item[], pieces: Events, end: Item = {}): PlayedAnswer {
  const usual = { id: 'resp_1', model: 'm-1', status: 'completed', error: null };
  const ended = { ...usual, output, usage: counts, ...end };
  const begun = { ...ended, status: 'in_progress', output: [], usage: null };
  return {
    whole: JSON.stringify(ended),
    events: [
      event('response.created', { response: begun }),
      event('response.in_progress', { response: begun }),
      ...pieces,
      event(`response.${ended.status}`, { response: ended }),
    ],
  };
}

const added = (output_index: number, item: Item) =>
  event('response.output_item.added', { output_index, item });
const done = (output_index: number, item: Item) => event('response.output_item.done', { output_index, item });
const delta = (output_index: number, kind: string, text: string) =>
  event(`response.${kind}.delta`, { output_index, item_id: 'i', content_index: 0, delta: text });

const message = (text: string, more?: Item): Item => ({
  ...{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  ...more,
});
/** A message in pieces, between the events that begin and end it. */
const said = (index: number, texts: string[], more?: Item): Events => [
  added(index, { ...message(''), content: [], status: 'in_progress', ...more }),
  event('response.content_part.added', { output_index: index, part: { type: 'output_text', text: '' } }),
  ...texts.map((text) => delta(index, 'output_text', text)),
  event('response.output_text.done', { output_index: index, text: texts.join('') }),
  done(index, message(texts.join(''), more)),
];

const call = (call_id: string, name: string, json: string, status = 'completed'): Item => ({
  ...{ id: `fc_${call_id}`, type: 'function_call', call_id, name, arguments: json, status },
});
const called = (index: number, item: Item, ...pieces: string[]): Events => [
  added(index, { ...item, arguments: '', status: 'in_progress' }),
  ...pieces.map((piece) => delta(index, 'function_call_arguments', piece)),
  event('response.function_call_arguments.done', { output_index: index, arguments: item.arguments }),
  done(index, item),
];

const summary = ['Hm.', 'So “ß”\n'].map((text) => ({ type: 'summary_text', text }));
const reasoning: Item = { id: 'rs_1', type: 'reasoning', summary, encrypted_content: 'gAAA==' };
const block = { summary, encrypted_content: 'gAAA==' };
const reasoned = (index: number): Events => [
  added(index, { ...reasoning, summary: [], encrypted_content: 'gA' }),
  ...summary.flatMap(({ text }, summary_index) => [
    event('response.reasoning_summary_part.added', { output_index: index, summary_index }),
    ...[...text].map((piece) => delta(index, 'reasoning_summary_text', piece)),
  ]),
  done(index, reasoning),
];

/** The events of an item that comes in pieces of three characters; one of a kind that is new has no pieces. */
function streamed(item: Item, index: number): Events {
  const [{ text } = { text: item.arguments }] = [item.content ?? []].flat() as Item[];
  const pieces = String(text).match(/.{1,3}/gs) ?? [];
  const { phase } = item;
  switch (item.type) {
    case 'message':
      return said(index, pieces, phase ? { phase } : {});
    case 'function_call':
      return called(index, item, '', ...pieces);
    case 'reasoning':
      return reasoned(index);
    default:
      return [added(index, item), done(index, item)];
  }
}

/** A response with these items, in pieces where it is a stream. */
const replied = (items: Item[], end?: Item) => response(items, items.flatMap(streamed), end);

/** The fields of a response that was cut. */
const cut = (reason?: string) => ({
  ...{ status: 'incomplete', incomplete_details: reason === undefined ? null : { reason } },
});

const hello = replied([message('Hello')]);
const parameters = { tools: [{ name: 'f' }, { name: 'g' }] };

describe.each(replyModes)('a $mode reply', ({ stream }) => {
  it('says its tier of service -> its meter hears it', async () => {
    const heard = vi.fn();
    const meter = { sent: () => {}, head: () => {}, heard };
    await play(response([message('Hello')], said(0, ['Hello']), { service_tier: 'priority' }), {
      stream,
      meter,
    });
    expect(heard.mock.calls).toMatchObject([[{ tier: 'priority', isComplete: true, bytes: 5 }]]);
  });

  it.each<[given: string, PlayedAnswer, gives: object]>([
    ['a text', hello, { text: 'Hello', reason: 'stop', model: 'm-1', usage }],
    [
      'calls behind a text, one without arguments',
      replied([message('Look:'), call('a', 'f', '{"x":1}'), call('b', 'g', '')]),
      {
        ...{ text: 'Look:', reason: 'stop' },
        calls: [
          ['a', 'f', '{"x":1}'],
          ['b', 'g', '{}'],
        ],
      },
    ],
    [
      'a call of which no piece came',
      response([call('a', 'f', '{"x":1}')], called(0, call('a', 'f', '{"x":1}'))),
      { text: '', calls: [['a', 'f', '{"x":1}']] },
    ],
    [
      'a cut at the limit of tokens, within a call',
      replied([message('Look:'), call('a', 'f', '{"x"', 'incomplete')], cut('max_output_tokens')),
      { text: 'Look:', reason: 'length', calls: [['a', 'f', '{"x"']], usage },
    ],
    [
      'a cut for a reason that is new',
      replied([message('Hel')], cut('max_messages')),
      { text: 'Hel', reason: 'length' },
    ],
    ['a cut without a reason', replied([message('Hel')], cut()), { text: 'Hel', reason: 'length' }],
    [
      'reasoning alone that has used up the tokens',
      replied([reasoning], cut('max_output_tokens')),
      { text: '', reason: 'length', usage },
    ],
    [
      'items of kinds that are new',
      replied([{ type: 'compaction', encrypted_content: 'x' }, message('Hello')]),
      { text: 'Hello', reason: 'stop' },
    ],
  ])('with %s -> is read', async (_, answer, gives) => {
    expect(await play(answer, { stream, parameters, blankAllowedFor: ['length'] })).toMatchObject(gives);
  });

  it('without a word of its tokens -> has none', async () => {
    const answer = replied([message('Hello')], { usage: null });
    expect(await play(answer, { stream })).not.toHaveProperty('usage');
  });

  it('with a text to stop at -> ends before it, although the API has no such parameter', async () => {
    const answer = replied([message('one END two')]);
    const reply = await play(answer, { stream, parameters: { stop: ['END'] } });
    expect([reply.text, reply.reason, reply.usage]).toEqual(['one ', 'stop', stream ? undefined : usage]);
    expect(JSON.parse(sent())).not.toHaveProperty('stop');
  });

  it.each<[given: string, PlayedAnswer, word: string]>([
    ['nothing', replied([]), 'blank'],
    ['a message without a text', replied([message('')]), 'blank'],
    ['a tool that was not offered', replied([call('a', 'h', '{}')]), 'unknown_tool'],
    ['a status that is no end', replied([message('Hi')], { status: 'cancelled' }), 'unfinished'],
  ])('with %s -> is none', async (_, answer, word) => {
    const broken = play(answer, { stream, parameters });
    await expect(broken).rejects.toMatchObject({ code: 'provider_error', cause: { word } });
  });

  it.each<[gives: string, codes: string[]]>([
    ['provider_error', ['server_error', 'server_is_overloaded', 'slow_down', 'vector_store_timeout']],
    ['provider_error', ['insufficient_quota', 'a_new_word']],
    ['provider_rate_limited', ['rate_limit_exceeded']],
    ['context_length_exceeded', ['context_length_exceeded']],
    ['content_blocked', ['invalid_prompt', 'bio_policy', 'cyber_policy', 'misalignment_policy_violation']],
    ['content_blocked', ['image_content_policy_violation']],
    ['provider_rejected', ['invalid_image_url', 'image_too_large', 'unsupported_image_media_type']],
    ['provider_rejected', ['empty_image_file', 'failed_to_download_image', 'data_residency_mismatch']],
  ])(
    'that is %s behind a 200, as %j say -> fails so, and nothing of its text is kept',
    async (gives, codes) => {
      for (const code of codes) {
        const error = { code, message: 'secret' };
        const failed = replied([], { status: 'failed', error });
        const flat = {
          whole: failed.whole,
          events: [event('error', { ...error, type: 'error', param: null })],
        };
        const nested = { whole: failed.whole, events: [event('error', { error })] };
        for (const answer of [failed, flat, nested]) {
          const failure = await play(answer, { stream }).catch((thrown: unknown) => thrown);
          expect(failure).toMatchObject({ code: gives, cause: { word: code } });
          expect(JSON.stringify(failure)).not.toContain('secret');
        }
      }
    },
  );

  it('that failed without a word about why -> is a provider_error, and may be asked for again', async () => {
    const failed = play(replied([], { status: 'failed' }), { stream });
    await expect(failed).rejects.toMatchObject({ code: 'provider_error', retryable: true });
  });

  const commentary = message('Look:', { phase: 'commentary' });
  const two = replied([reasoning, commentary, call('a', 'f', '{}'), message('And?')]);
  const own = { kind: 'opaque', provider: 'openai', model: 'm' };
  const kept = [
    { ...own, role: 'block', data: JSON.stringify(block) },
    { ...own, role: 'start', data: '{"phase":"commentary"}' },
    { kind: 'text', text: 'Look:' },
    { kind: 'call', id: 'a', name: 'f', arguments: '{}' },
    { kind: 'text', text: '\n\nAnd?' },
  ];

  it.each<['opaque' | 'shown' | undefined, pieces: object[]]>([
    ['opaque', kept],
    ['shown', [{ kind: 'thinking', text: 'Hm.\n\nSo “ß”\n' }, ...kept]],
  ])('whose caller can be given %s parts -> has them in their places', async (asked, pieces) => {
    const { marks, ...reply } = await play(two, { stream, parameters, ...(asked && { reasoning: asked }) });
    const text = stream ? reply.deltas.join('') : undefined;
    if (text !== undefined) expect(piecesOf({ text, marks })).toMatchObject(pieces);
    expect(marks?.map(({ kind }) => kind)).toEqual(pieces.map(({ kind }: { kind?: string }) => kind));
  });
});

describe('a stream', () => {
  const stream = true;
  it.each([
    ...['null', '', '{}', '{"type":"keepalive","sequence_number":3}'],
    '{"type":"response.queued","response":{}}',
    ...['{"type":"response.new.delta","delta":{"x":1}}', '{"type":"response.audio.delta","delta":7}'],
  ])('with %s between its events -> is read as if it were not there', async (data) => {
    const { text, usage: counted } = await play(withEvent(hello, '', data), { stream });
    expect([text, counted]).toEqual(['Hello', usage]);
  });

  it.each(['7', '"x"', '[]', '<html>', '{"type":"response.output_text.delta","delta":7}'])(
    'with %s between its events -> fails: a part may be lost',
    async (data) => {
      const broken = play(withEvent(hello, '', data), { stream });
      await expect(broken).rejects.toMatchObject({ code: 'provider_error', retryable: true });
    },
  );

  it('with a refusal that is only said to be over -> is blocked', async () => {
    const refused = event('response.refusal.done', { refusal: 'No.' });
    expect(await play(response([], [refused]), { stream })).toMatchObject({ text: '', reason: 'blocked' });
  });

  it.each([0, -1])('that ends at event %i, or with [DONE] there -> is unfinished', async (upTo) => {
    const events = hello.events.slice(0, upTo);
    for (const end of [[], [['', '[DONE]']]] as Events[]) {
      const broken = play({ whole: '', events: [...events, ...end] }, { stream });
      await expect(broken).rejects.toMatchObject({ code: 'provider_error', retryable: true });
    }
  });

  it.each<[given: string, (response: ServerResponse) => unknown, isOpen: boolean]>([
    ['nothing', () => {}, true],
    ['signs of life', (response) => response.write('data: {"type":"keepalive"}\n\n'), true],
    ['a cut', (response) => response.write('\n', () => response.socket?.destroy()), false],
    ['an error', (response) => response.end('data: {"type":"error","code":"server_error"}\n\n'), false],
    ['garbage', (response) => response.end('data: 7\n\n'), false],
  ])('that is complete, and then %s comes -> is given', async (_, end, isOpen) => {
    const { withTimeout, elapse } = heldTimeouts();
    const replying = play({ ...hello, end }, { stream, withTimeout });
    if (isOpen) await elapse(2000);
    expect(await replying).toMatchObject({ text: 'Hello', reason: 'stop', usage });
  });

  it('with a text to stop at -> closes its connection there', async () => {
    const closed = Promise.withResolvers<void>();
    const end = async (response: ServerResponse) => {
      await once(response, 'close');
      closed.resolve();
    };
    const [first = ['', ''], ...others] = said(0, ['one END two']);
    const answer: PlayedAnswer = { whole: '', events: [first, ...others.slice(0, 2)], end };
    const reply = await play(answer, { stream, parameters: { stop: ['END'] } });
    expect(reply).toMatchObject({ text: 'one ', deltas: ['one '], reason: 'stop' });
    await closed.promise;
  });
});

describe('an error of the server', () => {
  it.each<[given: string, status: number, error: object, advice: string | undefined]>([
    [
      'it does not know the path',
      404,
      { message: 'Invalid URL (POST /v1/responses)', code: null },
      'OPENAI_WIRE=chat',
    ],
    ['it does not know the model', 404, { message: 'no', code: 'model_not_found' }, undefined],
    ['it does not know the deployment', 404, { message: 'no', code: 'DeploymentNotFound' }, undefined],
    ['it refuses a value', 400, { message: 'no', code: 'invalid_value', param: 'input' }, undefined],
  ])('%s -> the advice to operators is %s', async (_, status, error, advice) => {
    const answer: PlayedAnswer = { status, whole: JSON.stringify({ error }), events: [] };
    const failed = play(answer, { stream: false });
    await expect(failed).rejects.toMatchObject({ code: 'provider_rejected', cause: { status, advice } });
  });
});

describe.each(replyModes)('the messages of a $mode reply', ({ stream }) => {
  const commentary = message('I look at the map.', { phase: 'commentary' });
  const final = message('Bonn.', { phase: 'final_answer' });
  const json = message('{"a":1}', { phase: 'final_answer' });
  const format = { type: 'json_object' as const };
  const twice = call('a', 'f', '{"x":1}');

  it.each<[given: string, items: Item[], asked: Partial<ProviderCommand>, text: string, calls: number]>([
    ['two messages', [commentary, final], {}, 'I look at the map.\n\nBonn.', 0],
    ['two messages around a call', [commentary, twice, final], {}, 'I look at the map.\n\nBonn.', 1],
    ['a commentary beside a format', [commentary, json], { parameters: { format } }, '{"a":1}', 0],
    ['no phase beside a format', [message('{"a":1}')], { parameters: { format } }, '{"a":1}', 0],
    ['the answer as a commentary, too', [message('Bonn.', { phase: 'commentary' }), final], {}, 'Bonn.', 0],
    ['a message that begins another one', [message('Bonn.'), message('Bonn')], {}, 'Bonn.\n\nBonn', 0],
    ['an empty message', [message(''), final], {}, 'Bonn.', 0],
    ['one call twice', [twice, twice, message('So.')], {}, 'So.', 1],
    ['two calls with one id', [twice, call('a', 'f', '{"x":2}')], {}, '', 2],
  ])('are %j -> each counts once, apart', async (_, items, asked, text, calls) => {
    const own = { parameters: { ...parameters, ...asked.parameters } };
    const reply = await play(replied(items), { stream, ...asked, ...own });
    expect([reply.text, reply.calls.length]).toEqual([text, calls]);
    if (stream && calls === 0) expect(reply.deltas.join('')).toBe(text);
  });
});

describe('an item that first stands whole', () => {
  const item = call('a', 'f', '{"x":1}');
  const begun = added(0, { ...item, arguments: '', status: 'in_progress' });
  const argumentsDone = event('response.function_call_arguments.done', { arguments: '{"x":1}' });
  const first = delta(0, 'function_call_arguments', '{"x"');
  const [opened] = said(0, []);
  const textDone = event('response.output_text.done', { content_index: 0, text: 'Hello' });

  it.each<[where: string, events: Events, output: Item[]]>([
    ['in `arguments.done`', [begun, argumentsDone], []],
    ['there, behind a piece', [begun, first, argumentsDone], []],
    ['in the event that ends it', [begun, done(0, item)], []],
    ['there, without a beginning', [done(0, item)], []],
    ['there, before its name', [first, done(0, item)], []],
    ['in the last event', [], [item]],
    ['in the last event, behind a piece', [begun, first], [item]],
    ['in its beginning', [added(0, item)], []],
    ['twice', [begun, done(0, item), done(0, item)], [item]],
    ['in another place of the last event', [...said(0, []), added(1, item), done(1, item)], [item]],
  ])('is a call %s -> it has its arguments, once', async (_, events, output) => {
    const answer = response([], events, { output });
    const { calls } = await play(answer, { stream: true, parameters });
    expect(calls).toEqual([['a', 'f', '{"x":1}']]);
  });

  it.each<[where: string, events: Events, output: Item[]]>([
    ['in `output_text.done`', [opened as Events[number], textDone], []],
    ['there, behind a piece', [opened as Events[number], delta(0, 'output_text', 'Hel'), textDone], []],
    ['in the event that ends it', [done(0, message('Hello'))], []],
    ['in the last event', [], [message('Hello')]],
    ['in the last event, behind a piece', [delta(0, 'output_text', 'Hel')], [message('Hello')]],
    ['everywhere', said(0, ['Hel', 'lo']), [message('Hello')]],
  ])('is a text %s -> it is read once', async (_, events, output) => {
    const reply = await play(response([], events, { output }), { stream: true });
    expect([reply.text, reply.deltas.join('')]).toEqual(['Hello', 'Hello']);
  });

  it('says something else than its pieces -> the reply is none', async () => {
    const other = [begun, delta(0, 'function_call_arguments', '{"x":2}'), argumentsDone];
    const broken = play(response([], other, { output: [] }), { stream: true, parameters });
    await expect(broken).rejects.toMatchObject({ cause: { word: 'malformed_arguments' } });
  });
});

it('a whole response comes where a stream was asked for -> it is read', async () => {
  const end = (sent: ServerResponse) => void sent.end(hello.whole);
  expect(await play({ ...hello, events: [], end }, { stream: true })).toMatchObject({ text: 'Hello', usage });
});
