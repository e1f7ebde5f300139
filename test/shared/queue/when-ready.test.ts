import { describe, expect, it, vi } from 'vitest';
import { whenReady } from '../../../shared/queue/queue-store.js';
import { createRecordingLog } from '../../support/recording-log.js';

describe('whenReady', () => {
  const { log, lines } = createRecordingLog();
  const lost = new Error('lost');
  const failing = () => Promise.reject(lost);

  it('a store that answers and refuses -> is tried again, and each reason is warned of once', async () => {
    const store = { whenReady: async () => true };
    const refusals = ['one', 'one', 'two', 'one'];
    const work = vi.fn(async () => {
      const refusal = refusals.shift();
      if (refusal) throw new Error(refusal);
      return 'done';
    });
    const deps = { store, signal: new AbortController().signal, log, pauseMs: 1 };
    expect(await whenReady(work, deps)).toBe('done');
    expect(work).toHaveBeenCalledTimes(5);
    const warning = { level: 40, msg: 'the queue store refused, trying again' };
    expect(lines).toMatchObject([warning, warning]);
  });

  it('a signal that aborts while the store is down again -> the last error', async () => {
    const stopping = new AbortController();
    let checks = 0;
    const store = {
      whenReady: async () => {
        checks += 1;
        if (checks > 1) stopping.abort();
        return checks === 1;
      },
    };
    await expect(whenReady(failing, { store, signal: stopping.signal, log })).rejects.toBe(lost);
  });

  it('a signal that aborts before the store is ready -> nothing is done', async () => {
    const work = vi.fn();
    const store = { whenReady: async () => false };
    const deps = { store, signal: AbortSignal.abort('stopping'), log };
    await expect(whenReady(work, deps)).rejects.toBe('stopping');
    expect(work).not.toHaveBeenCalled();
  });

  it('a store that refuses as often as is allowed -> the last error', async () => {
    const work = vi.fn(failing);
    const deps = { store: { whenReady: async () => true }, signal: new AbortController().signal, log };
    await expect(whenReady(work, { ...deps, maxTries: 2, pauseMs: 1 })).rejects.toBe(lost);
    expect(work).toHaveBeenCalledTimes(2);
  });
});
