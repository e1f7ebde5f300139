import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { FleetLink } from '../../../api/fleet-link/fleet-link.js';
import { observeProviders, observeQueues } from '../../../api/operations/queue-gauges.js';
import { FleetState } from '../../../shared/fleet/fleet-state.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import { type ApiInstruments, openInstruments } from '../../../shared/metrics/instruments.js';
import { apiMetrics } from '../../../shared/metrics/metrics.js';
import type { QueueDepth } from '../../../shared/queue/queue-store.js';
import { writeContent } from '../../support/attached.js';
import { noLedger, originOfTest } from '../../support/entries.js';
import { heartbeatOf } from '../../support/heartbeats.js';
import { readMetrics } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openSharedStore, type SharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

const { log } = createRecordingLog();

let instruments: ApiInstruments;
beforeEach(() => {
  instruments = openInstruments(apiMetrics);
});

/** One provider's gauges in a scrape. */
async function ofQueue() {
  const all = readMetrics((await instruments.scrape()).text);
  const own = [...all].filter(
    ([series]) => /^quillgate_queue/.test(series) && !/anthropic|bedrock|vertexai/.test(series),
  );
  return Object.fromEntries(own.map(([series, value]) => [series.replace('quillgate_queue_', ''), value]));
}
const series = (waiting: number, active: number, seconds: number) => ({
  up: 1,
  'jobs{provider="openai",state="waiting"}': waiting,
  'jobs{provider="openai",state="active"}': active,
  'oldest_waiting_seconds{provider="openai"}': seconds,
});

describe('observeQueues', () => {
  let nowMs: number;
  let depth: QueueDepth | undefined;
  beforeEach(() => {
    nowMs = 100_000;
    depth = { waiting: 2, active: 1, oldestAddedAt: 40_000 };
    const fleet = { readDepths: async () => depth && new Map([['openai' as const, depth]]) };
    observeQueues({ instruments, fleet, now: () => nowMs });
  });

  it('time passes between two counts -> what waits is older', async () => {
    expect(await ofQueue()).toEqual(series(2, 1, 60));
    nowMs += 900;
    expect(await ofQueue()).toEqual(series(2, 1, 60.9));
  });

  it('the store fails -> its series are removed until it answers', async () => {
    await ofQueue();
    depth = undefined;
    expect(await ofQueue()).toEqual({ up: 0 });
    depth = { waiting: 0, active: 0, oldestAddedAt: undefined };
    expect(await ofQueue()).toEqual(series(0, 0, 0));
  });

  it('the clock of another API process is ahead -> no age below zero', async () => {
    depth = { waiting: 1, active: 0, oldestAddedAt: nowMs + 500 };
    expect(await ofQueue()).toEqual(series(1, 0, 0));
  });
});

describe('observeProviders', () => {
  it('the chats of a provider fail -> is 1 for that one while its workers take jobs', async () => {
    const heartbeats = new Heartbeats();
    observeProviders(instruments, { isConnected: true, heartbeats, pools: new LivePools(heartbeats) });
    const read = async () =>
      [...readMetrics((await instruments.scrape()).text)].flatMap(([series, value]) =>
        series.startsWith('quillgate_pool_failing') && value === 1 ? [series] : [],
      );
    for (const provider of ['openai', 'bedrock'] as const) heartbeats.add(heartbeatOf({ provider }));
    const chats = { ended: 10, code: 'overloaded' };
    heartbeats.addChats('api', [
      { ...chats, provider: 'openai', failed: 4 },
      { ...chats, provider: 'bedrock', failed: 5 },
    ]);
    expect(await read()).toEqual(['quillgate_pool_failing{provider="bedrock"}']);
    heartbeats.add(heartbeatOf({ provider: 'bedrock', state: 'paused' }));
    expect(await read()).toEqual([]);
  });

  it('what operators have set -> is shown once it is known', async () => {
    const heartbeats = new Heartbeats({ since: 0 });
    const pools = new LivePools(heartbeats);
    const link = { isConnected: false, pools, heartbeats };
    observeProviders(instruments, link);
    const read = async () =>
      [...readMetrics((await instruments.scrape()).text)].flatMap(([series, value]) =>
        series.startsWith('quillgate_intake') && value === 1 ? [series.replace('quillgate_intake', '')] : [],
      );
    expect(await read()).toEqual([]);
    link.isConnected = true;
    const record = { v: 1, version: 1, changedAt: '', changedBy: 'x' } as const;
    pools.settings.apply({ ...record, provider: 'bedrock', overrides: { intake: 'paused' } });
    pools.settings.apply({ ...record, provider: 'vertexai', overrides: { intake: 'draining' } });
    expect(await read()).toEqual([
      '{provider="openai",state="open"}',
      '{provider="anthropic",state="open"}',
      '{provider="bedrock",state="paused"}',
      '{provider="vertexai",state="draining"}',
    ]);
    pools.settings.apply({ ...record, version: 2, provider: 'bedrock', overrides: {} });
    expect(await read()).toContain('{provider="bedrock",state="open"}');
  });
});

describe.each(findStores())('observeQueues on $kind', (server) => {
  let shared: SharedStore;
  let link: FleetLink;
  beforeAll(async () => {
    shared = await openSharedStore(server, log);
    const { metrics } = openInstruments(apiMetrics);
    link = new FleetLink({ store: shared.store, metrics, ledger: noLedger, log });
    await link.start(new LiveChats());
  });
  afterAll(async () => {
    await link?.close();
    await shared?.stop();
  });

  it('a store that falls silent -> says so instead of waiting, and is right again once it answers', async () => {
    observeQueues({ instruments, fleet: new FleetState({ store: shared.store, source: link }) });
    await link.add(randomUUID(), {
      ...{ user: 'me', provider: 'openai', origin: originOfTest() },
      written: writeContent({ turns: [{ role: 'user', content: 'Hello' }] }),
      deadline: Date.now() + 60_000,
    });
    expect(await ofQueue()).toMatchObject({ up: 1, 'jobs{provider="openai",state="waiting"}': 1 });
    shared.wire.freeze();
    // Without a bound of its own a count would never end.
    await vi.waitFor(async () => expect(await ofQueue()).toEqual({ up: 0 }), patience);
    shared.wire.thaw();
    await vi.waitFor(
      async () =>
        expect(await ofQueue()).toMatchObject({ up: 1, 'jobs{provider="openai",state="waiting"}': 1 }),
      patience,
    );
  });
});
