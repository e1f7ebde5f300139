import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { countAll } from '../../../shared/queue/priority.js';
import { ok, startChatService, turn, withKey } from '../../support/chat-service.js';

let started: ReturnType<typeof startChatService>;
beforeEach(() => {
  started = startChatService();
});
afterEach(() => started.end());

const timeout = { code: 'timeout' };
const unavailable = { code: 'queue_unavailable' };
/** Asks for a chat whose job is added at once. */
const ask = async (own: Parameters<typeof started.ask>[0] = {}) => {
  const answer = started.ask(own);
  started.adding.resolve();
  await turn();
  return { answer };
};
const settle = () => started.chats.onOutcome('one', ok);

describe('a chat', () => {
  it('has its reply, and its client disconnects -> nothing is cancelled', async () => {
    const { answer } = await ask();
    settle();
    expect(await answer).toEqual({ kind: 'completed', completion: ok });
    started.client.abort();
    await turn();
    expect(started.asked).toEqual(['add one']);
  });

  it.each([
    ['credentials that end', new Failure('unauthorized'), { code: 'unauthorized' }],
    ['a client that disconnects', undefined, timeout],
  ])('meets %s -> it ends so, and its job is cancelled', async (_, reason, expected) => {
    const { answer } = await ask();
    started.client.abort(reason);
    await expect(answer).rejects.toMatchObject(expected);
    await turn();
    expect(started.asked).toEqual(['add one', 'cancel one']);
  });

  it.each([
    [
      'is of a user whose removal this process has not heard of yet',
      new Failure('unauthorized'),
      'unauthorized',
    ],
    ['is of a user who is still there', undefined, 'internal'],
  ])('is cancelled by another process, and %s -> it ends so', async (_, ended, code) => {
    const confirmAccess = async () => void (ended && started.client.abort(ended));
    const { answer } = await ask({ confirmAccess });
    started.chats.onOutcome('one', { kind: 'cancelled', queueMs: 0, providerMs: 0 });
    await expect(answer).rejects.toMatchObject({ code });
  });

  it.each([false, true])(
    'is asked for -> its job has its user, what is asked of the model, and whether it comes last: %s',
    async (isLowPriority) => {
      const own = { user: 'another', parameters: { seed: 1, stop: ['a'] } };
      const { answer } = await ask({ ...own, isLowPriority });
      settle();
      await answer;
      expect(started.added).toMatchObject([{ ...own, isAsync: isLowPriority }]);
    },
  );

  it('comes from a client that has disconnected already -> nothing is added', async () => {
    started.client.abort();
    await expect(started.ask()).rejects.toMatchObject(timeout);
    expect(started.asked).toEqual([]);
  });

  // A job that is cancelled before it is there would be added after that.
  it.each([
    ['resolve', 'cancel'],
    ['reject', 'cancel unconfirmed'],
  ] as const)(
    'is left by its client during a slow add -> it ends at once, and is cancelled after the add (%s)',
    async (how, done) => {
      const answer = started.ask();
      await turn();
      started.client.abort();
      await expect(answer).rejects.toMatchObject(timeout);
      expect(started.asked).toEqual(['add one']);
      started.adding[how]();
      await turn();
      expect(started.asked).toEqual(['add one', `${done} one`]);
    },
  );

  it('has a job whose add failed -> it is cancelled, because the store may take it all the same', async () => {
    const answer = started.ask();
    started.adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toMatchObject(unavailable);
    expect([started.asked, started.chats.all()]).toEqual([['add one', 'cancel unconfirmed one'], []]);
  });

  it('has a slow add past the deadline -> it ends, counting what the request has taken so far', async () => {
    const answer = started.ask({ waitMs: 60_000, elapsedMs: 59_980 });
    await turn();
    vi.advanceTimersByTime(21);
    await expect(answer).rejects.toMatchObject(timeout);
    started.adding.reject(new Failure('queue_unavailable'));
    await turn();
    await expect(started.ask({ elapsedMs: 60_000 })).rejects.toMatchObject(timeout);
    expect(started.asked).toEqual(['add one']);
  });

  it('has a job that is lost -> it is added again once, but not before its add was confirmed', async () => {
    const answer = started.ask();
    await turn();
    const { chats, asked } = started;
    expect(chats.onLost('one', Date.now())).toBe(false);
    started.adding.resolve();
    await turn();
    expect(asked).toEqual(['add one']);
    expect([1, 2].map(() => chats.onLost('one', Date.now()))).toEqual([true, false]);
    expect(asked).toEqual(['add one', 'add one']);
    settle();
    await answer;
  });
});

describe('a stored chat', () => {
  const isAsync = { ...withKey, isAsync: true };

  it('is begun -> the id of the chat is told before anything becomes of it', async () => {
    const onResolved = vi.fn();
    const answer = started.ask({ storeOptions: { ...withKey, onResolved } });
    await turn();
    expect(onResolved).toHaveBeenCalledExactlyOnceWith('one', { isReplayed: false });
    settle();
    await answer;
  });

  it('is left by its client -> nothing is cancelled', async () => {
    const { answer } = await ask({ storeOptions: withKey });
    started.client.abort();
    await expect(answer).rejects.toMatchObject(timeout);
    expect(started.asked).toEqual(['add one', 'detached']);
    settle();
  });

  it('is asynchronous -> it is accepted once the queue has taken it, and not before', async () => {
    const accepted = vi.fn();
    const answer = started.ask({ storeOptions: isAsync }).then(accepted);
    await turn();
    vi.advanceTimersByTime(0);
    await turn();
    expect(accepted).not.toHaveBeenCalled();
    started.adding.resolve();
    await answer;
    expect(accepted).toHaveBeenCalledWith({ kind: 'accepted', id: 'one', status: 'queued' });
    expect(started.asked).toEqual(['add one', 'detached']);
    settle();
  });

  it.each([
    // Without a key no request can come back for the chat.
    ['without a key -> it is cancelled', undefined, ['add one', 'cancel unconfirmed one of me']],
    ['with one -> it is left alone', 'k', ['add one']],
  ])('is not taken by the queue -> it is not accepted: %s', async (_, key, asked) => {
    const answer = started.ask({ storeOptions: { ...isAsync, key } });
    started.adding.reject(new Failure('queue_unavailable'));
    await expect(answer).rejects.toMatchObject(unavailable);
    expect(started.asked).toEqual(asked);
  });

  it('is accepted at a second try with its key -> it counts as detached once, and as one chat', async () => {
    const refused = started.ask({ storeOptions: isAsync });
    started.adding.reject(new Failure('queue_unavailable'));
    await expect(refused).rejects.toMatchObject(unavailable);
    started.claim({ state: 'unknown' });
    started.adding = Promise.withResolvers();
    for (let n = 0; n < 2; n += 1) {
      const { answer } = await ask({ storeOptions: isAsync });
      vi.advanceTimersByTime(0);
      expect(await answer).toMatchObject({ kind: 'accepted' });
    }
    expect(started.asked.filter((step) => step === 'detached')).toHaveLength(1);
    expect(countAll(started.shares.of('openai').async)).toBe(1);
    settle();
  });

  it('is left by its client, and not taken by the queue -> it is over, and counts nowhere', async () => {
    const answer = started.ask({ storeOptions: withKey });
    await turn();
    started.client.abort();
    await expect(answer).rejects.toMatchObject(timeout);
    expect(started.chats.all()).toHaveLength(1);
    started.adding.reject(new Failure('queue_unavailable'));
    await turn();
    expect([started.chats.all(), countAll(started.shares.of('openai').waitedFor)]).toEqual([[], 0]);
  });

  it('has a caller that waits for a while -> the reply if it comes meanwhile, else it is accepted', async () => {
    const soon = await ask({ storeOptions: isAsync, waitMs: 60_000 });
    settle();
    expect(await soon.answer).toEqual({ kind: 'completed', completion: ok });
    const late = await ask({ storeOptions: isAsync, waitMs: 20 });
    vi.advanceTimersByTime(21);
    expect(await late.answer).toMatchObject({ kind: 'accepted' });
    settle();
  });
});
