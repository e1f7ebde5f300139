import { describe, expect, it } from 'vitest';
import { retryWhileDown } from '../../../workers/job/retry-while-down.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { log } = createRecordingLog();
const store = { whenReady: async (signal: AbortSignal) => !signal.aborted };
const lost = new Error('lost');

describe('retryWhileDown', () => {
  it('tries again until it is done', async () => {
    let tries = 0;
    const work = async () => {
      tries += 1;
      if (tries < 3) throw lost;
      return 'done';
    };
    expect(await retryWhileDown(work, { store, signal: new AbortController().signal, log })).toBe('done');
    expect(tries).toBe(3);
  });

  it('throws what it met when it is told to stop', async () => {
    const stop = new AbortController();
    const running = retryWhileDown(() => Promise.reject(lost), { store, signal: stop.signal, log });
    setImmediate(() => stop.abort());
    await expect(running).rejects.toBe(lost);
  });

  it('gives up on a store that is ready and refuses all the same', async () => {
    await expect(
      retryWhileDown(() => Promise.reject(lost), { store, signal: new AbortController().signal, log }),
    ).rejects.toBe(lost);
  });
});
