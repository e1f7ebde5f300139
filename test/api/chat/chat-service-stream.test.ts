import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { ChatService } from '../../../api/chat/chat-service.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { userNamed } from '../../support/identities.js';

const ok: Outcome = { kind: 'ok', text: 'Hello', callId: 'call', model: 'm', queueMs: 1, providerMs: 1 };
const timeout = { code: 'timeout' };

/** The calls of the job client, in order. */
let asked: string[];
let adding: PromiseWithResolvers<void>;
let chats: LiveChats;
let chatService: ChatService;
let client: AbortController;
let written: string[];
let isRead: boolean;
/** The outcome of a chat that had ended before. */
let ended: Outcome | undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  [asked, written, isRead, ended] = [[], [], true, undefined];
  adding = Promise.withResolvers();
  chats = new LiveChats();
  chats.listen({ detached: ({ isStored }) => void (isStored && asked.push('detached')) });
  client = new AbortController();
  chatService = new ChatService({
    jobClient: () => jobs,
    chats,
    shares: new UserShares(),
    storedChats: {
      find: async ({ requestId }, deadline) => {
        const chat = {
          id: requestId,
          deadline,
          expiresAt: deadline,
          current: { provider: 'openai' },
        } as const;
        return ended ? { joined: { chat, result: { state: 'settled', outcome: ended } } } : {};
      },
      open: async ({ requestId }, { deadline, current }) => ({
        chat: { id: requestId, deadline, expiresAt: deadline, current },
      }),
      cancelUnconfirmed: () => void asked.push('cancel unconfirmed'),
    },
    ...{ timeoutMs: 60_000, maxMs: 60_000, maxStreamMs: 300_000 },
  });
});
afterEach(() => {
  // A worker ends what was cut.
  chats.onOutcome('one', ok);
  expect([vi.getTimerCount(), chats.all(), getEventListeners(client.signal, 'abort')]).toEqual([0, [], []]);
  vi.useRealTimers();
});

const jobs: NonNullable<ReturnType<ConstructorParameters<typeof ChatService>[0]['jobClient']>> = {
  pools: new LivePools(new Heartbeats()),
  check: async () => {},
  add: (_jobId, { stream, firstDeltaBy = 0, deadline }) => {
    asked.push(`add ${stream ? 'a stream' : 'a chat'}, ${deadline - firstDeltaBy} ms after its first delta`);
    return adding.promise;
  },
  read: async () => ({ state: 'running' }),
  cancel: ({ jobId }) => void asked.push(`cancel ${jobId}`),
  cancelUnconfirmed: ({ jobId }) => void asked.push(`cancel unconfirmed ${jobId}`),
  requestResend: () => {},
};

const left = Promise.withResolvers<never>();
left.promise.catch(() => {});
const sink = {
  begin: () => {},
  write: (text: string) => {
    written.push(text);
    return isRead;
  },
  drained: () => (isRead ? Promise.resolve() : left.promise),
};
const added = 'add a stream, 300000 ms after its first delta';
const withKey = {
  ...{ owner: userNamed('me'), key: 'k', isAsync: false, onResolved: () => {} },
};

const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Asks for a stream whose job is added at once. */
async function ask(own: Partial<ChatCommand> = {}): Promise<Promise<unknown>[]> {
  const answer = chatService.createChat({
    ...{ requestId: 'one', user: 'me', provider: 'openai', model: 'm', turns: [], signal: client.signal },
    stream: { sink, from: undefined },
    ...own,
  });
  answer.catch(() => {});
  adding.resolve();
  await turn();
  return [answer];
}
async function receive(at: number, text: string, callId = 'call'): Promise<void> {
  chats.onDelta({ jobId: 'one', callId, at, text });
  await turn();
}

describe('createChat, of a stream', () => {
  it('writes each delta as it comes, and what is missing with the outcome', async () => {
    const [answer] = await ask();
    await receive(0, 'Hel');
    expect(written).toEqual(['Hel']);
    chats.onOutcome('one', ok);
    expect(await answer).toEqual({ kind: 'completed', completion: ok });
    expect([written, asked]).toEqual([['Hel', 'lo'], [added]]);
  });

  it('ends what has not begun in time, and cancels it although it could go on for minutes', async () => {
    const [answer] = await ask();
    vi.advanceTimersByTime(60_000);
    await expect(answer).rejects.toMatchObject(timeout);
    expect(asked).toEqual([added, 'cancel one']);
  });

  it('cancels nothing that the caller can come back for', async () => {
    const [answer] = await ask({ storeOptions: withKey });
    vi.advanceTimersByTime(60_000);
    await expect(answer).rejects.toMatchObject(timeout);
    expect(asked).toEqual([added, 'detached']);
    chats.onOutcome('one', ok);
    await turn();
  });

  it('goes on with what begins in the last moment, until its own deadline', async () => {
    const [answer] = await ask();
    vi.advanceTimersByTime(59_999);
    await receive(0, 'H');
    vi.advanceTimersByTime(299_000);
    await receive(1, 'e');
    expect([written, asked]).toEqual([['H', 'e'], [added]]);
    vi.advanceTimersByTime(1001);
    await expect(answer).rejects.toMatchObject(timeout);
  });

  it('ends what the caller does not wait for, begun or not', async () => {
    const [answer] = await ask({ waitMs: 5000 });
    await receive(0, 'H');
    vi.advanceTimersByTime(5000);
    await expect(answer).rejects.toMatchObject(timeout);
    expect(asked).toEqual(['add a stream, 0 ms after its first delta']);
  });

  it('writes what is left of a chat that had ended before', async () => {
    ended = ok;
    const [answer] = await ask({
      storeOptions: withKey,
      stream: { sink, from: { callId: 'call', offset: 3 } },
    });
    expect(await answer).toMatchObject({ kind: 'completed' });
    expect([written, asked]).toEqual([['lo'], []]);
  });

  it.each([
    ['cancels it', undefined, 'cancel one'],
    ['leaves it alone with a key', withKey, 'detached'],
  ])('that is begun anew is not continued: %s', async (_, storeOptions, last) => {
    const [answer] = await ask({ storeOptions });
    await receive(0, 'Hel');
    await receive(0, 'Good', 'another');
    await expect(answer).rejects.toMatchObject({ code: 'internal', retryable: true });
    expect([written, asked]).toEqual([['Hel'], [added, last]]);
    chats.onOutcome('one', ok);
    await turn();
  });
});

describe('a client that leaves a stream', () => {
  it.each([
    ['before its first delta', ''],
    ['in the middle', 'Hel'],
  ])('%s cancels it', async (_, text) => {
    const [answer] = await ask();
    if (text) await receive(0, text);
    client.abort();
    await expect(answer).rejects.toMatchObject(timeout);
    expect(asked).toEqual([added, 'cancel one']);
  });

  it('with a key cancels nothing', async () => {
    const [answer] = await ask({ storeOptions: withKey });
    await receive(0, 'Hel');
    client.abort();
    await expect(answer).rejects.toMatchObject(timeout);
    expect(asked).toEqual([added, 'detached']);
    chats.onOutcome('one', ok);
    await turn();
  });

  it('cancels nothing once the reply is there', async () => {
    isRead = false;
    const [answer] = await ask();
    chats.onOutcome('one', ok);
    await turn();
    client.abort();
    left.reject(new Error('left'));
    await expect(answer).rejects.toThrow('left');
    expect(asked).toEqual([added]);
  });
});
