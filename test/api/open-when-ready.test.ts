import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openJobClient } from '../../api/chat/jobs/job-client.js';
import { createPendingReplies } from '../../api/chat/jobs/pending-replies.js';
import { openWhenReady } from '../../api/open-when-ready.js';
import { parseConfig } from '../../shared/config/config.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { apiInstruments } from '../support/metrics.js';
import { patience } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';
import { findRedisBinary } from '../support/redis-binary.js';
import { startRedisProcess } from '../support/redis-process.js';

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

describe.skipIf(findRedisBinary() === undefined)('openWhenReady', () => {
  it('tries again after pauses, and warns once, where the store answers and refuses', async () => {
    const { store, log, permit, warnings } = await openLimitedStore();
    const startedAt: number[] = [];
    const open = () => {
      startedAt.push(performance.now());
      const pendingReplies = createPendingReplies();
      return openJobClient({ store, pendingReplies, metrics: apiInstruments.metrics, log });
    };
    const opening = openWhenReady(open, { store, log, signal: AbortSignal.timeout(30_000) });
    await vi.waitFor(() => expect(startedAt.length).toBeGreaterThan(2), patience);
    const [first = 0, , third = 0] = startedAt;
    expect(third - first).toBeGreaterThan(twoPausesMs);
    expect(warnings()).toMatchObject([{ msg: 'the queue could not be opened, and is tried again' }]);
    await permit('+@all');
    const link = await opening;
    expect(link).toBeDefined();
    await link?.close();
  });

  it('gives up when it is told to', async () => {
    const { store, log } = await openLimitedStore();
    const stopping = new AbortController();
    const failing = async () => {
      stopping.abort();
      throw new Error('refused');
    };
    expect(await openWhenReady(failing, { store, log, signal: stopping.signal })).toBeUndefined();
  });
});
