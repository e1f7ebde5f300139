import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { ok, startChatService, turn, withKey } from '../../support/chat-service.js';

const timeout = { code: 'timeout' };
let started: ReturnType<typeof startChatService>;
beforeEach(() => {
  started = startChatService();
});
afterEach(() => started.end());

/** Asks for a stream whose job is added at once. */
async function ask(own: Partial<ChatCommand> = {}): Promise<Promise<unknown>[]> {
  const answer = started.ask({ stream: { sink: started.sink, from: undefined }, ...own });
  started.adding.resolve();
  await turn();
  return [answer];
}
async function receive(at: number, text: string, callId = 'call'): Promise<void> {
  started.receive(at, text, callId);
  await turn();
}
const settle = () => started.chats.onOutcome('one', ok);

describe('createChat, of a stream', () => {
  it('writes each delta as it comes, and what is missing with the outcome', async () => {
    const [answer] = await ask();
    await receive(0, 'Hel');
    expect(started.written).toEqual(['Hel']);
    settle();
    expect(await answer).toEqual({ kind: 'completed', completion: ok });
    expect([started.written, started.asked]).toEqual([['Hel', 'lo'], ['add one']]);
    const [{ stream, firstDeltaBy = 0, deadline } = { deadline: 0 }] = started.added;
    expect([stream, deadline - firstDeltaBy]).toEqual([true, 300_000]);
  });

  it.each([
    ['cancels it although it could go on for minutes', undefined, 'cancel one'],
    ['leaves it alone with a key', withKey, 'detached'],
  ])('ends what has not begun in time: %s', async (_, storeOptions, last) => {
    const [answer] = await ask({ storeOptions });
    vi.advanceTimersByTime(60_000);
    await expect(answer).rejects.toMatchObject(timeout);
    expect(started.asked.slice(0, 2)).toEqual(['add one', last]);
    settle();
  });

  it('goes on with what begins in the last moment, until its own deadline', async () => {
    const [answer] = await ask();
    vi.advanceTimersByTime(59_999);
    await receive(0, 'H');
    for (let n = 0; n < 10; n += 1) {
      vi.advanceTimersByTime(29_900);
      // The provider is silent; the worker is there.
      await receive(1, '');
    }
    await receive(1, 'e');
    expect([started.written, started.asked.filter((each) => typeof each === 'string')]).toEqual([
      ['H', 'e'],
      ['add one'],
    ]);
    vi.advanceTimersByTime(1001);
    await expect(answer).rejects.toMatchObject(timeout);
  });

  it('writes what is left of a chat that had ended before', async () => {
    started.claim({ state: 'settled', outcome: ok });
    const stream = { sink: started.sink, from: { callId: 'call', offset: 3 } };
    const [answer] = await ask({ storeOptions: withKey, stream });
    expect(await answer).toMatchObject({ kind: 'completed' });
    expect([started.written, started.asked]).toEqual([['lo'], []]);
  });

  it.each([
    ['cancels it', undefined, 'cancel one'],
    ['leaves it alone with a key', withKey, 'detached'],
  ])('that is begun anew is not continued: %s', async (_, storeOptions, last) => {
    const [answer] = await ask({ storeOptions });
    await receive(0, 'Hel');
    await receive(0, 'Good', 'another');
    await expect(answer).rejects.toMatchObject({ code: 'internal', retryable: true });
    expect([started.written, started.asked.slice(0, 2)]).toEqual([['Hel'], ['add one', last]]);
    settle();
  });
});

describe('a client that leaves a stream', () => {
  it.each([
    ['before its first delta cancels it', '', undefined, ['cancel one']],
    ['in the middle cancels it', 'Hel', undefined, ['cancel one']],
    ['with a key cancels nothing', 'Hel', withKey, ['detached', 'left']],
  ])('%s', async (_, text, storeOptions, done) => {
    const [answer] = await ask({ storeOptions });
    if (text) await receive(0, text);
    started.client.abort();
    await expect(answer).rejects.toMatchObject(timeout);
    expect(started.asked).toEqual(['add one', ...done]);
    settle();
  });

  it('cancels nothing once the reply is there', async () => {
    started.isRead = false;
    const [answer] = await ask();
    settle();
    await turn();
    started.client.abort();
    started.breakOff(new Error('left'));
    await expect(answer).rejects.toThrow('left');
    expect(started.asked).toEqual(['add one']);
  });
});
