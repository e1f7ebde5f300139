import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ChatRecorder } from '../../../api/admin/history/chat-recorder.js';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { ChatService } from '../../../api/chat/chat-service.js';
import type { JobClient, NewJob } from '../../../api/chat/jobs/job-client.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import type { StoredChats } from '../../../api/chat/stored-chats.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import { Failure } from '../../../shared/failures.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { userNamed } from '../../support/identities.js';

const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 };

/** The calls of the job client, in order; the test confirms the add. */
let asked: string[];
let added: NewJob[];
let adding: PromiseWithResolvers<void>;
let chats: LiveChats;
let chatService: ChatService;
let client: AbortController;
/** The records for operators. */
let recorded: string[];
/** How the stored chat had ended. */
let endedBefore: Outcome | undefined;

beforeEach(() => {
  asked = [];
  added = [];
  recorded = [];
  endedBefore = undefined;
  adding = Promise.withResolvers();
  chats = new LiveChats();
  client = new AbortController();
  const jobs: Pick<
    JobClient,
    'pools' | 'check' | 'add' | 'read' | 'cancel' | 'cancelUnconfirmed' | 'requestResend'
  > = {
    pools: new LivePools(new Heartbeats()),
    check: async () => {},
    add: (jobId, job) => {
      added.push(job);
      asked.push(`add ${jobId}`);
      return adding.promise;
    },
    read: async () => ({ state: 'unknown' }),
    cancel: ({ jobId }) => void asked.push(`cancel ${jobId}`),
    cancelUnconfirmed: ({ jobId }) => void asked.push(`cancel unconfirmed ${jobId}`),
    requestResend: () => {},
  };
  chatService = new ChatService({
    jobClient: () => jobs,
    chats,
    shares: new UserShares(),
    storedChats,
    timeoutMs: 60_000,
    maxMs: 60_000,
    maxStreamMs: 60_000,
  });
  const recorder = new ChatRecorder({
    recordArrival: () => void recorded.push('arrival'),
    recordEnd: ({ id, code }) => void recorded.push(`${id} ${code}`),
  });
  chats.listen(recorder);
});

/** There is one stored chat, which the first command creates. */
const storedChats: Pick<StoredChats, 'find' | 'open' | 'cancelUnconfirmed'> = {
  find: async (_, deadline) => {
    if (endedBefore === undefined) return {};
    const chat = { id: 'one', deadline, expiresAt: deadline + 1, current: { provider: 'openai' } } as const;
    return { joined: { chat, result: { state: 'settled', outcome: endedBefore } } };
  },
  open: async (_, { deadline, current }) => ({
    chat: { id: 'one', deadline, expiresAt: deadline + 1, current },
  }),
  cancelUnconfirmed: ({ owner, id }) => void asked.push(`cancel unconfirmed ${id} of ${owner.name}`),
};

const ask = (command: Partial<ChatCommand> = {}) =>
  chatService.createChat({
    requestId: 'one',
    user: 'me',
    provider: 'openai',
    model: 'm',
    turns: [{ role: 'user', content: 'Hello' }],
    signal: client.signal,
    ...command,
  });
const turn = () => new Promise((resolve) => setImmediate(resolve));
const timeout = expect.objectContaining({ code: 'timeout' });
const nothingIsLeft = () => {
  expect(chats.all()).toEqual([]);
  expect(getEventListeners(client.signal, 'abort')).toEqual([]);
};

describe('createChat', () => {
  it('cancels nothing for a client that disconnects after the reply', async () => {
    const answer = ask();
    adding.resolve();
    await turn();
    chats.onOutcome('one', ok);
    expect(await answer).toEqual({ kind: 'completed', completion: ok });
    nothingIsLeft();
    client.abort();
    await turn();
    expect(asked).toEqual(['add one']);
  });

  // Finding M7.
  it('answers as the credentials ended, and cancels the job', async () => {
    const answer = ask();
    adding.resolve();
    await turn();
    client.abort(new Failure('unauthorized'));
    await expect(answer).rejects.toMatchObject({ code: 'unauthorized' });
    await turn();
    expect(asked).toEqual(['add one', 'cancel one']);
    chats.onOutcome('one', { kind: 'cancelled', queueMs: 1, providerMs: 1 });
    nothingIsLeft();
  });

  it('has the job carry the id of the user and what is asked of the model', async () => {
    const parameters = { seed: 1, stop: ['a'] };
    const answer = ask({ user: 'somebody', parameters });
    adding.resolve();
    await turn();
    chats.onOutcome('one', ok);
    await answer;
    expect(added).toMatchObject([{ user: 'somebody', parameters }]);
  });

  it.each([false, true])('has a job come after all others, or not: %s', async (isLowPriority) => {
    const answer = ask({ isLowPriority });
    adding.resolve();
    await turn();
    chats.onOutcome('one', ok);
    await answer;
    expect(added).toMatchObject([{ isAsync: isLowPriority }]);
  });

  it('adds nothing for a client that has disconnected already', async () => {
    client.abort();
    await expect(ask()).rejects.toEqual(timeout);
    nothingIsLeft();
    expect(asked).toEqual([]);
  });

  it('cancels the job when the client disconnects', async () => {
    const answer = ask();
    adding.resolve();
    await turn();
    client.abort();
    await expect(answer).rejects.toEqual(timeout);
    expect(asked).toEqual(['add one', 'cancel one']);
    expect(recorded).toEqual(['arrival']);
    chats.onOutcome('one', { kind: 'cancelled', queueMs: 1, providerMs: 1 });
    await turn();
    expect(recorded).toEqual(['arrival', 'one cancelled']);
    nothingIsLeft();
  });

  // A job that is cancelled before it is there would be added after that.
  it.each([
    ['resolve', 'cancel'],
    ['reject', 'cancel unconfirmed'],
  ] as const)(
    'does not wait for a slow add when the client disconnects, but cancels the job only after it (%s)',
    async (how, done) => {
      const answer = ask();
      await turn();
      client.abort();
      await expect(answer).rejects.toEqual(timeout);
      expect(asked).toEqual(['add one']);
      adding[how]();
      await turn();
      expect(asked).toEqual(['add one', `${done} one`]);
    },
  );

  it('cancels a job whose add failed, because the store may take it all the same', async () => {
    const answer = ask();
    adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toEqual(expect.objectContaining({ code: 'queue_unavailable' }));
    nothingIsLeft();
    expect(asked).toEqual(['add one', 'cancel unconfirmed one']);
  });

  it('does not wait for a slow add past the deadline that the caller named', async () => {
    await expect(ask({ waitMs: 20 })).rejects.toEqual(timeout);
    adding.reject(new Failure('queue_unavailable'));
    await turn();
    expect(asked).toEqual(['add one']);
  });

  it('counts what the request has taken so far against the deadline', async () => {
    await expect(ask({ waitMs: 60_000, elapsedMs: 59_980 })).rejects.toEqual(timeout);
    expect(asked).toEqual(['add one']);
    await expect(ask({ elapsedMs: 60_000 })).rejects.toEqual(timeout);
    expect(asked).toEqual(['add one']);
  });

  it('leaves nothing behind of a request whose add failed', async () => {
    const answer = ask();
    adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toMatchObject({ code: 'queue_unavailable' });
    nothingIsLeft();
  });

  it('adds a lost job again once, but not before its add was confirmed', async () => {
    const answer = ask();
    await turn();
    expect(chats.onLost('one', Date.now())).toBe(false);
    adding.resolve();
    await turn();
    expect(asked).toEqual(['add one']);
    expect([1, 2].map(() => chats.onLost('one', Date.now()))).toEqual([true, false]);
    expect(asked).toEqual(['add one', 'add one']);
    chats.onOutcome('one', ok);
    await answer;
    nothingIsLeft();
  });
});

describe('createChat, of a stored chat', () => {
  let detached: number;
  beforeEach(() => {
    detached = 0;
    chats.listen({
      detached: () => {
        detached += 1;
      },
    });
  });
  /** The chat went on without its request, and ends now. */
  const end = async () => {
    expect(detached).toBe(1);
    chats.onOutcome('one', ok);
    await turn();
  };
  const onResolved = vi.fn();
  const storeOptions = { owner: userNamed('me'), key: 'k', isAsync: false, onResolved };
  const isAsync = { ...storeOptions, isAsync: true };

  it('reports the id of the chat before anything becomes of it', async () => {
    const answer = ask({ storeOptions });
    await turn();
    expect(onResolved).toHaveBeenCalledExactlyOnceWith('one', { isReplayed: false });
    adding.resolve();
    chats.onOutcome('one', ok);
    await answer;
  });

  it('cancels nothing when the client disconnects', async () => {
    const answer = ask({ storeOptions });
    adding.resolve();
    await turn();
    client.abort();
    await expect(answer).rejects.toEqual(timeout);
    await end();
    nothingIsLeft();
    expect(asked).toEqual(['add one']);
  });

  it('accepts what the queue has taken, and not before', async () => {
    const answer = ask({ storeOptions: isAsync });
    await turn();
    adding.resolve();
    expect(await answer).toEqual({ kind: 'accepted', id: 'one', status: 'queued' });
    await end();
    nothingIsLeft();
  });

  it('polls rarely for a chat that goes on without its request', async () => {
    const polledIn = (slots: number[]) =>
      slots.filter((slot) => chats.due({ attachedBefore: Number.POSITIVE_INFINITY, slot }).length > 0);
    const slots = Array.from({ length: 15 }, (_, index) => index);
    const answer = ask({ storeOptions: isAsync, waitMs: 20 });
    adding.resolve();
    await turn();
    expect(polledIn(slots)).toEqual(slots);
    await answer;
    expect(polledIn(slots)).toHaveLength(1);
    await end();
    nothingIsLeft();
  });

  it('accepts nothing that the queue has not taken', async () => {
    const answer = ask({ storeOptions: isAsync });
    adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toMatchObject({ code: 'queue_unavailable' });
    expect(detached).toBe(0);
    nothingIsLeft();
    // Without a key no request can come back for the chat.
    expect(asked).toEqual(['add one']);
    adding = Promise.withResolvers();
    const keyless = ask({ storeOptions: { ...isAsync, key: undefined } });
    adding.reject(new Failure('queue_unavailable'));
    await expect(keyless).rejects.toMatchObject({ code: 'queue_unavailable' });
    expect(asked).toEqual(['add one', 'add one', 'cancel unconfirmed one of me']);
  });

  it('replies to a caller that waits for a while when the reply comes meanwhile, and accepts when it does not', async () => {
    adding.resolve();
    const soon = ask({ storeOptions: isAsync, waitMs: 60_000 });
    await turn();
    chats.onOutcome('one', ok);
    expect(await soon).toEqual({ kind: 'completed', completion: ok });
    expect(await ask({ storeOptions: isAsync, waitMs: 20 })).toMatchObject({ kind: 'accepted' });
    await end();
    nothingIsLeft();
  });

  it.each([
    ['both wait for it', storeOptions, storeOptions],
    ['the first does not wait', isAsync, storeOptions],
    ['the second does not wait', storeOptions, isAsync],
    ['neither waits', isAsync, isAsync],
  ])('records that it came and ended, once, when two requests are for it and %s', async (_, one, two) => {
    adding.resolve();
    const answers = [ask({ storeOptions: one }), ask({ requestId: 'two', storeOptions: two })];
    await turn();
    expect(recorded).toEqual(['arrival']);
    chats.onOutcome('one', ok);
    await Promise.all(answers);
    await turn();
    expect(recorded).toEqual(['arrival', 'one ok']);
  });

  it('records its end although the request that it came with leaves while another one does not wait', async () => {
    adding.resolve();
    const first = ask({ storeOptions });
    await ask({ requestId: 'two', storeOptions: isAsync, signal: new AbortController().signal });
    client.abort();
    await expect(first).rejects.toEqual(timeout);
    await turn();
    expect(recorded).toEqual(['arrival']);
    chats.onOutcome('one', ok);
    await turn();
    expect(recorded).toEqual(['arrival', 'one ok']);
    nothingIsLeft();
  });

  it('records nothing of one that had ended before', async () => {
    endedBefore = ok;
    expect(await ask({ storeOptions })).toEqual({ kind: 'completed', completion: ok });
    expect(recorded).toEqual([]);
  });
});
