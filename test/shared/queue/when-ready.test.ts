import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JobClient } from '../../../api/chat/jobs/job-client.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { parseConfig } from '../../../shared/config/config.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { whenReady } from '../../../shared/queue/when-ready.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { findRedisBinary } from '../../support/redis-binary.js';
import { startRedisProcess } from '../../support/redis-process.js';

/** A quarter of a second, doubled once, less what timers may be early. */
const twoPausesMs = 740;

async function openLimitedStore() {
  const redis = await startRedisProcess();
  onTestFinished(redis.stop);
  const permit = (...rules: string[]) => redis.command('ACL', 'SETUSER', 'limited', ...rules);
  await permit('on', '>secret', '~*', '&*', '+@all', '-eval');
  const { log, lines } = createRecordingLog();
  const url = `redis://limited:secret@127.0.0.1:${redis.port}`;
  const store = openQueueStore(parseConfig({ REDIS_URL: url }, 'config'), log);
  onTestFinished(store.close);
  const warnings = () => lines.filter(({ level }) => Number(level) >= 40);
  return { store, log, permit, warnings };
}

describe.skipIf(findRedisBinary() === undefined)('whenReady', () => {
  it('tries again after pauses, and warns once, where the store answers and refuses', async () => {
    const { store, log, permit, warnings } = await openLimitedStore();
    const startedAt: number[] = [];
    const open = () => {
      startedAt.push(performance.now());
      return JobClient.open({ store, chats: new LiveChats(), metrics: apiInstruments.metrics, log });
    };
    const opening = whenReady(open, { store, log, signal: AbortSignal.timeout(30_000), maxPauseMs: 8000 });
    await vi.waitFor(() => expect(startedAt.length).toBeGreaterThan(2), patience);
    const [first = 0, , third = 0] = startedAt;
    expect(third - first).toBeGreaterThan(twoPausesMs);
    expect(warnings()).toMatchObject([{ msg: 'the queue store refused, trying again' }]);
    await permit('+@all');
    const client = await opening;
    await client.close();
  });
});

describe('whenReady', () => {
  const { log } = createRecordingLog();
  const lost = new Error('lost');
  const failing = () => Promise.reject(lost);

  it('throws the last error when the signal aborts while the store is down again', async () => {
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

  it('does nothing when the signal aborts before the store is ready', async () => {
    const work = vi.fn();
    const store = { whenReady: async () => false };
    const deps = { store, signal: AbortSignal.abort('stopping'), log };
    await expect(whenReady(work, deps)).rejects.toBe('stopping');
    expect(work).not.toHaveBeenCalled();
  });

  it('throws the last error of a store that is ready and refuses as often as is allowed', async () => {
    const work = vi.fn(failing);
    const deps = { store: { whenReady: async () => true }, signal: new AbortController().signal, log };
    await expect(whenReady(work, { ...deps, maxTries: 2 })).rejects.toBe(lost);
    expect(work).toHaveBeenCalledTimes(2);
  });
});
