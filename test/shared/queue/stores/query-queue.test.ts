import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { QueryQueue } from '../../../../shared/queue/stores/postgres-jobs.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const silentMs = 2000;
const open = () => new QueryQueue({ concurrency: 1, silentMs });

/** A query that is answered, or fails, when told. */
function controlled() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { query: vi.fn(() => promise), resolve, reject };
}

describe('QueryQueue', () => {
  it('sends no more at once than there are connections, the oldest first', async () => {
    const queue = open();
    const [first, second, third] = [controlled(), controlled(), controlled()];
    const answers = [first, second, third].map(({ query }) => queue.run(query));
    expect([first, second, third].map(({ query }) => query.mock.calls.length)).toEqual([1, 0, 0]);
    first.resolve('one');
    await answers[0];
    expect([first, second, third].map(({ query }) => query.mock.calls.length)).toEqual([1, 1, 0]);
    second.reject(new Error('refused'));
    await expect(answers[1]).rejects.toThrow('refused');
    third.resolve('three');
    expect(await answers[2]).toBe('three');
  });

  it('lets a query wait for as long as others are answered', async () => {
    const queue = open();
    const slow = Array.from({ length: 5 }, controlled);
    for (const { query } of slow) queue.run(query);
    const last = queue.run(async () => 'last');
    for (const { resolve } of slow) {
      await vi.advanceTimersByTimeAsync(silentMs - 1);
      resolve('answer');
    }
    expect(await last).toBe('last');
  });

  it('does not take an answer for missing that has come while this process was busy', async () => {
    vi.useRealTimers();
    const queue = new QueryQueue({ concurrency: 1, silentMs: 20 });
    // The answer is there at once, and is read when this process has a moment.
    const { port1: store, port2: connection } = new MessageChannel();
    const answered = queue.run(() => once(connection, 'message'));
    store.postMessage('answer');
    const waiting = queue.run(async () => 'sent');
    for (const until = performance.now() + 60; performance.now() < until; );
    await answered;
    expect(await waiting).toBe('sent');
    store.close();
  });

  it('fails what waits when nothing is answered, and does not send it', async () => {
    const queue = open();
    const silent = controlled();
    const running = queue.run(silent.query);
    const waiting = vi.fn(async () => 'never');
    const failed = expect(queue.run(waiting)).rejects.toThrow('the store answers nothing');
    await vi.advanceTimersByTimeAsync(silentMs + 1);
    await failed;
    silent.resolve('late');
    expect(await running).toBe('late');
    expect(waiting).not.toHaveBeenCalled();
    expect(await queue.run(async () => 'after')).toBe('after');
  });
});
