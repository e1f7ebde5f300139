import { describe, expect, it } from 'vitest';
import type { Completion } from '../../../../api/chat/chat-result.js';
import {
  type MessageEvent,
  MessageEvents,
  toMessage,
} from '../../../../api/chat-apis/anthropic-messages/message-events.js';
import type { Mark } from '../../../../shared/protocol/parts.js';
import { startPlaying } from '../../../support/playing-provider.js';

const { playRequest } = await startPlaying();

const head = { id: 'id', model: 'claude', tokens: 7 };
const usage = { input_tokens: 5, output_tokens: 1, cache_read_input_tokens: 3, service_tier: 'standard' };
const begun = {
  ...{ id: 'msg_01', type: 'message', role: 'assistant', model: 'claude-x', content: [] },
  ...{ stop_reason: null, stop_sequence: null, usage, unknown: { kept: 12345678901234 } },
};
const ended = { stop_reason: 'tool_use', stop_sequence: null, stop_details: null, context_management: null };

/** A block as its events say it. */
const block = (content_block: object, ...deltas: object[]) => ({ content_block, deltas });
const text = (...pieces: string[]) =>
  block({ type: 'text', text: '' }, ...pieces.map((each) => ({ type: 'text_delta', text: each })));
type Block = ReturnType<typeof block>;

const eventsOf = (blocks: Block[], delta: object = ended): MessageEvent[] => [
  { type: 'message_start', message: begun },
  ...blocks.flatMap(({ content_block, deltas }, index) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((each) => ({ type: 'content_block_delta', index, delta: each })),
    { type: 'content_block_stop', index },
  ]),
  { type: 'message_delta', delta, usage: { output_tokens: 9 }, own: 1 },
  { type: 'message_stop' },
];

const body = {
  ...{ text: '{"messages":[]}', blobs: [], maxTokens: 10, version: '2023-06-01', features: [] },
};

/** What a client is sent of a reply that came so. */
async function roundTrip(events: MessageEvent[], reasoning: 'opaque' | 'shown') {
  const answer = { whole: '', events: events.map((event): [string, object] => [event.type, event]) };
  const pieces: [string, Mark | undefined][] = [];
  const request = { turns: [], body, model: 'claude-x', reasoning, maxOutputTokens: 10 };
  const signal = AbortSignal.timeout(5000);
  const reply = await playRequest('anthropic', answer, { ...request, signal }, (piece, mark) =>
    pieces.push([piece, mark]),
  );
  const sent: MessageEvent[] = [];
  const written = new MessageEvents(head, (event) => sent.push(event) > 0);
  for (const [piece, mark] of pieces) {
    if (mark) written.mark(mark);
    written.write(piece);
  }
  const { reason, marks = [], ...rest } = reply;
  const completion: Completion = {
    ...rest,
    kind: reason === 'length' ? 'truncated' : 'ok',
    queueMs: 0,
    providerMs: 0,
  };
  written.done(completion);
  return { sent, message: toMessage(head, completion) };
}

/** Deltas of one block joined: pieces may be cut otherwise. */
function joined(events: MessageEvent[]) {
  const blocks = new Map<unknown, object[]>();
  for (const { index, delta, content_block } of events as unknown as Record<string, object>[]) {
    if (content_block) blocks.set(index, [content_block]);
    else if (index !== undefined && delta) blocks.get(index)?.push(delta);
  }
  return [...blocks.values()];
}

const signed = (signature: string, ...pieces: string[]) =>
  block(
    { type: 'thinking', thinking: '', signature: '' },
    ...pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
    { type: 'signature_delta', signature },
  );
const call = (id: string, name: string, ...pieces: string[]) =>
  block(
    { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } },
    ...pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  );
const citation = { type: 'char_location', cited_text: 'x', document_index: 0 };

describe.each(['opaque', 'shown'] as const)('a reply of Anthropic, with thinking %s', (reasoning) => {
  it.each<[string, Block[]]>([
    ['text', [text('Hello', ' there')]],
    ['two texts', [text('Hello'), text('there')]],
    ['a blank and a text', [text(' \n'), text('there')]],
    ['thinking', [signed('sig', 'I ', 'think'), text('so')]],
    ['hidden thinking', [signed('sig'), text('so')]],
    ['thinking twice', [signed('one', 'a'), signed('two', 'b'), text('so')]],
    ['hidden thoughts', [block({ type: 'redacted_thinking', data: 'abc' }), text('so')]],
    [
      'calls',
      [text('I look'), call('toolu_1', 'look', '{"a', '":1}'), call('any id', 'not offered', '{"b":[]}')],
    ],
    ['arguments that are no JSON', [call('toolu_1', 'look', '{"a": tru')]],
    [
      'a tool of the server',
      [
        block(
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
          { type: 'input_json_delta', partial_json: '{"q":1}' },
        ),
        block({ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ a: 1 }] }),
        text('found'),
      ],
    ],
    [
      'citations',
      [
        block(
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'As ' },
          { type: 'citations_delta', citation },
          { type: 'text_delta', text: 'said' },
        ),
        block(
          { type: 'text', text: '' },
          { type: 'citations_delta', citation },
          { type: 'text_delta', text: 'so' },
        ),
        text('.'),
      ],
    ],
    ['a block that is new', [block({ type: 'new', field: 1 }, { type: 'new_delta', more: 2 }), text('x')]],
  ])('with %s → its client is sent the same', async (_, blocks) => {
    const events = eventsOf(blocks);
    const { sent } = await roundTrip(events, reasoning);
    const plain = (block: object[]) => block.map((each) => ({ ...each, citations: undefined }));
    expect(joined(sent).map(plain)).toEqual(joined(events).map(plain));
    expect(sent.slice(-2)).toEqual(events.slice(-2));
    const [{ message }] = sent as unknown as [{ message: object }];
    const { container, diagnostics, stop_details, ...own } = message as Record<string, unknown>;
    expect([container, diagnostics, stop_details]).toEqual([null, null, null]);
    const { id, model, usage: counts, ...others } = begun;
    expect(own).toMatchObject({ ...others, id: 'msg_id', model: 'claude', usage: counts });
  });
});
