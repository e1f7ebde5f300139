import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PendingReplies } from '../../../api/chat/jobs/pending-replies.js';
import { ReplyStream } from '../../../api/chat/jobs/reply-stream.js';
import { StoredChats } from '../../../api/chat/stored-chats.js';
import { Failure } from '../../../shared/failures.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import type { StoredChat } from '../../../shared/protocol/stored-chat.js';

const ok: Outcome = { kind: 'ok', text: 'Hello', callId: 'call', model: 'm', queueMs: 1, providerMs: 1 };

let pendingReplies: PendingReplies;
let client: AbortController;
let chat: StoredChat;
let asked: (number | string)[];
let written: string[];
let streams: Set<ReplyStream>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  pendingReplies = new PendingReplies();
  client = new AbortController();
  [asked, written, streams] = [[], [], new Set()];
  chat = { id: 'one', provider: 'openai', deadline: Date.now() + 60_000 } as StoredChat;
});
afterEach(() => {
  expect([vi.getTimerCount(), streams.size, getEventListeners(client.signal, 'abort')]).toEqual([0, 0, []]);
  expect(pendingReplies.pending()).toEqual([]);
  vi.useRealTimers();
});

const sink = {
  begin: () => {},
  write: (text: string) => {
    written.push(text);
    return true;
  },
  drained: async () => {},
};

type Jobs = NonNullable<ReturnType<ConstructorParameters<typeof StoredChats>[0]['jobClient']>>;

function follow({ offset = 0, outcome }: { offset?: number; outcome?: Outcome } = {}): Promise<unknown> {
  const jobs: Jobs = {
    read: async () => ({ state: 'running' }),
    cancel: () => void asked.push('cancel'),
    openStream: (_job, options) => {
      const onDispose = () => void streams.delete(stream);
      const requestResend = (from: number) => void asked.push(from);
      const stream = new ReplyStream({ ...options, requestResend, onDispose });
      streams.add(stream);
      return stream;
    },
  };
  const chats = new StoredChats({
    records: {} as never,
    ...{ jobClient: () => jobs, pendingReplies, resultTtlMs: 60_000, maxOutputTokens: () => 4096 },
  });
  const result = outcome ? ({ state: 'settled', outcome } as const) : ({ state: 'running' } as const);
  const from = offset > 0 ? { callId: 'call', offset } : undefined;
  const reply = chats.follow(chat, result, { sink, from, signal: client.signal });
  reply.catch(() => {});
  return reply;
}
const receive = (at: number, text: string, callId = 'call') => {
  for (const stream of streams) stream.receive({ jobId: 'one', callId, at, text });
};

describe('follow', () => {
  // Finding M7.
  it('ends as the credentials of its reader do, and leaves the chat alone', async () => {
    const reply = follow();
    client.abort(new Failure('unauthorized'));
    await expect(reply).rejects.toMatchObject({ code: 'unauthorized' });
    expect(asked).not.toContain('cancel');
  });

  it('asks the worker for the text, from where the reader has got to, and ends with the outcome', async () => {
    const reply = follow({ offset: 1 });
    expect(asked).toEqual([1]);
    receive(1, 'el');
    pendingReplies.settle('one', ok);
    expect(await reply).toEqual({ kind: 'completed', completion: ok });
    expect([written, asked]).toEqual([['el', 'lo'], [1]]);
  });

  it('writes what is left of a chat that has ended', async () => {
    await follow({ offset: 2, outcome: ok });
    expect([written, asked]).toEqual([['llo'], []]);
  });

  it('lets several read one chat, each from a place of its own', async () => {
    const replies = [follow(), follow({ offset: 3 })];
    receive(0, 'Hell');
    pendingReplies.settle('one', ok);
    await Promise.all(replies);
    expect(written).toEqual(['Hell', 'l', 'o', 'o']);
  });

  it.each([
    ['in the middle', () => client.abort(), false],
    ['before it begins', () => client.abort(), true],
  ])('leaves the chat alone when the reader leaves %s', async (_, leave, isEarly) => {
    if (isEarly) leave();
    const reply = follow();
    if (!isEarly) {
      receive(0, 'H');
      leave();
    }
    await expect(reply).rejects.toMatchObject({ code: 'timeout' });
    expect(asked).toEqual([0]);
  });

  it('ends with the failure of the chat, or at its deadline', async () => {
    const failed = follow();
    pendingReplies.settle('one', {
      ...{ kind: 'failed', code: 'provider_error', retryable: true, queueMs: 1, providerMs: 1 },
    });
    await expect(failed).rejects.toMatchObject({ code: 'provider_error' });
    const late = follow();
    receive(0, '');
    vi.advanceTimersByTime(120_000);
    await expect(late).rejects.toMatchObject({ code: 'timeout' });
  });

  it('never continues the text of another call', async () => {
    const reply = follow({ offset: 3 });
    receive(0, '', 'another');
    await expect(reply).rejects.toMatchObject({ code: 'internal', retryable: true });
    expect(written).toEqual([]);
  });
});
