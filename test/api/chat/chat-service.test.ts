import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { type ChatService, createChatService } from '../../../api/chat/chat-service.js';
import type { JobClient } from '../../../api/chat/jobs/job-client.js';
import { createPendingReplies, type PendingReplies } from '../../../api/chat/jobs/pending-replies.js';
import { createPoolRegistry } from '../../../api/chat/pools/pool-registry.js';
import type { StoredChats } from '../../../api/chat/stored-chats.js';
import { Failure } from '../../../shared/failures.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { userNamed } from '../../support/identities.js';

const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 };

/** What was asked of the link, in order; the add is answered when the test says so. */
let asked: string[];
let adding: PromiseWithResolvers<void>;
let pendingReplies: PendingReplies;
let chatService: ChatService;
let going: AbortController;

beforeEach(() => {
  asked = [];
  adding = Promise.withResolvers();
  pendingReplies = createPendingReplies();
  going = new AbortController();
  const link: JobClient = {
    pools: createPoolRegistry({ since: performance.now() }),
    check: async () => {},
    add: (jobId) => {
      asked.push(`add ${jobId}`);
      return adding.promise;
    },
    read: async () => ({ state: 'unknown' }),
    measure: async () => ({ waiting: 0, active: 0, oldestAddedAt: undefined }),
    cancel: ({ jobId }) => void asked.push(`cancel ${jobId}`),
    cancelUnconfirmed: ({ jobId }) => void asked.push(`call off ${jobId}`),
    cancelStored: () => {},
    close: async () => {},
  };
  chatService = createChatService({
    link: () => link,
    pendingReplies,
    storedChats: begins,
    timeoutMs: 60_000,
    maxMs: 60_000,
  });
});

const refused = () => Promise.reject(new Failure('not_found'));
/** Every kept command begins a chat. */
const begins: StoredChats = {
  open: async ({ requestId }, { deadline, admit }) => {
    await admit();
    return { chat: { id: requestId, deadline, keptUntil: deadline + 1 }, isNew: true };
  },
  read: refused,
  cancel: refused,
  abandon: ({ owner, id }) => void asked.push(`abandon ${id} of ${owner.name}`),
};

const ask = (command: Partial<ChatCommand> = {}) =>
  chatService.createChat({
    requestId: 'one',
    user: 'me',
    provider: 'openai',
    model: 'm',
    turns: [{ role: 'user', content: 'Hello' }],
    gone: going.signal,
    ...command,
  });
const turn = () => new Promise((resolve) => setImmediate(resolve));
const timeout = expect.objectContaining({ code: 'timeout' });
const nothingIsKept = () => {
  expect(pendingReplies.waiting()).toEqual([]);
  expect(getEventListeners(going.signal, 'abort')).toEqual([]);
};

describe('ask', () => {
  it('calls nothing off for a caller who goes with the answer', async () => {
    const answer = ask();
    adding.resolve();
    await turn();
    pendingReplies.settle('one', ok);
    expect(await answer).toEqual({ kind: 'answered', answer: ok, isReplayed: false });
    nothingIsKept();
    going.abort();
    await turn();
    expect(asked).toEqual(['add one']);
  });

  it('adds nothing for a caller who has gone already', async () => {
    going.abort();
    await expect(ask()).rejects.toEqual(timeout);
    nothingIsKept();
    expect(asked).toEqual([]);
  });

  it('calls the job off when the caller goes', async () => {
    const answer = ask();
    adding.resolve();
    await turn();
    going.abort();
    await expect(answer).rejects.toEqual(timeout);
    nothingIsKept();
    expect(asked).toEqual(['add one', 'cancel one']);
  });

  // A job called off before it is there would be added after that.
  it.each([
    ['resolve', 'cancel'],
    ['reject', 'call off'],
  ] as const)(
    'does not wait for a slow add when the caller goes, but calls it off only then (%s)',
    async (how, done) => {
      const answer = ask();
      await turn();
      going.abort();
      await expect(answer).rejects.toEqual(timeout);
      nothingIsKept();
      expect(asked).toEqual(['add one']);
      adding[how]();
      await turn();
      expect(asked).toEqual(['add one', `${done} one`]);
    },
  );

  it('calls off a job that is refused, for the store may take it all the same', async () => {
    const answer = ask();
    adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toEqual(expect.objectContaining({ code: 'queue_unavailable' }));
    nothingIsKept();
    expect(asked).toEqual(['add one', 'call off one']);
  });

  it('does not wait for a slow add past the deadline that the caller named', async () => {
    await expect(ask({ waitMs: 20 })).rejects.toEqual(timeout);
    nothingIsKept();
    adding.reject(new Failure('queue_unavailable'));
    await turn();
    expect(asked).toEqual(['add one']);
  });

  it('counts what the request has taken so far against the deadline', async () => {
    await expect(ask({ waitMs: 60_000, elapsedMs: 59_980 })).rejects.toEqual(timeout);
    expect(asked).toEqual(['add one']);
    await expect(ask({ elapsedMs: 60_000 })).rejects.toEqual(timeout);
    nothingIsKept();
    expect(asked).toEqual(['add one']);
  });

  it('keeps nothing of a request whose add failed', async () => {
    const answer = ask();
    adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toMatchObject({ code: 'queue_unavailable' });
    nothingIsKept();
  });

  it('puts a job back once that vanished, but not before its add was answered', async () => {
    const answer = ask();
    await turn();
    pendingReplies.vanished('one');
    adding.resolve();
    await turn();
    expect(asked).toEqual(['add one']);
    pendingReplies.vanished('one');
    pendingReplies.vanished('one');
    expect(asked).toEqual(['add one', 'add one']);
    pendingReplies.settle('one', ok);
    await answer;
    nothingIsKept();
  });
});

describe('ask, for a caller who may come back', () => {
  const onDetached = vi.fn();
  beforeEach(() => void onDetached.mockReset());
  /** The chat went on without its request, and ends now. */
  const end = async () => {
    expect(onDetached).toHaveBeenCalledOnce();
    pendingReplies.settle('one', ok);
    await onDetached.mock.lastCall?.[0];
    await turn();
  };
  const onResolved = vi.fn();
  const storeOptions = { owner: userNamed('me'), key: 'k', isAsync: false, onResolved, onDetached };
  const isAsync = { ...storeOptions, isAsync: true };

  it('says which chat it is before anything becomes of it', async () => {
    const answer = ask({ storeOptions });
    await turn();
    expect(onResolved).toHaveBeenCalledExactlyOnceWith('one');
    adding.resolve();
    pendingReplies.settle('one', ok);
    await answer;
  });

  it('calls nothing off when the caller goes', async () => {
    const answer = ask({ storeOptions });
    adding.resolve();
    await turn();
    going.abort();
    await expect(answer).rejects.toEqual(timeout);
    await end();
    nothingIsKept();
    expect(asked).toEqual(['add one']);
  });

  it('accepts what the queue has taken, and not before', async () => {
    const answer = ask({ storeOptions: isAsync });
    await turn();
    adding.resolve();
    expect(await answer).toEqual({ kind: 'accepted', id: 'one', status: 'queued' });
    await end();
    nothingIsKept();
  });

  it('waits patiently for a chat that goes on without its request', async () => {
    const lookedAt = (turns: number[]) => turns.filter((turn) => pendingReplies.waiting({ turn }).length > 0);
    const turns = Array.from({ length: 15 }, (_, index) => index);
    const answer = ask({ storeOptions: isAsync, waitMs: 20 });
    adding.resolve();
    await turn();
    expect(lookedAt(turns)).toEqual(turns);
    await answer;
    expect(lookedAt(turns)).toHaveLength(1);
    await end();
    nothingIsKept();
  });

  it('accepts nothing that the queue has not taken', async () => {
    const answer = ask({ storeOptions: isAsync });
    adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toMatchObject({ code: 'queue_unavailable' });
    expect(onDetached).not.toHaveBeenCalled();
    nothingIsKept();
    // Without a key nobody can come back for it.
    expect(asked).toEqual(['add one']);
    adding = Promise.withResolvers();
    const keyless = ask({ storeOptions: { ...isAsync, key: undefined } });
    adding.reject(new Failure('queue_unavailable'));
    await expect(keyless).rejects.toMatchObject({ code: 'queue_unavailable' });
    expect(asked).toEqual(['add one', 'add one', 'abandon one of me']);
  });

  it('answers who waits for a while when the reply comes meanwhile, and accepts when it does not', async () => {
    adding.resolve();
    const soon = ask({ storeOptions: isAsync, waitMs: 60_000 });
    await turn();
    pendingReplies.settle('one', ok);
    expect(await soon).toEqual({ kind: 'answered', answer: ok, isReplayed: false });
    expect(await ask({ storeOptions: isAsync, waitMs: 20 })).toMatchObject({ kind: 'accepted' });
    await end();
    nothingIsKept();
  });
});
