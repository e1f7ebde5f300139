import { beforeEach, describe, expect, it } from 'vitest';
import { describeProviders } from '../../../shared/fleet/fleet.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import {
  type PoolHeartbeat,
  poolHeartbeatSchema,
  processHeartbeatSchema,
} from '../../../shared/protocol/messages.js';
import type { EndedChats } from '../../../shared/protocol/stored-chat.js';
import { heartbeatOf } from '../../support/heartbeats.js';

let nowMs: number;
let heartbeats: Heartbeats;
beforeEach(() => {
  nowMs = 0;
  heartbeats = new Heartbeats({ now: () => nowMs, time: () => Date.UTC(2026, 10, 22) + nowMs });
});

const base = heartbeatOf({ inFlight: 3, meanJobMs: 1000.4 });
const hear = (changes: Partial<PoolHeartbeat> = {}) => heartbeats.add({ ...base, ...changes });
const openai = () => describeProviders(heartbeats)[0];
const worker = () => openai()?.workers[0];
const at = (ms: number) => new Date(Date.UTC(2026, 10, 22) + ms).toISOString();

describe('describeProviders', () => {
  it('has every provider, unknown until its workers must have been heard of, then absent', () => {
    const states = () =>
      describeProviders(heartbeats).map(({ provider, state, kind }) => [provider, state, kind]);
    expect(states()).toEqual(
      ['openai', 'anthropic', 'bedrock', 'vertexai'].map((id) => [id, 'unknown', 'unknown']),
    );
    nowMs = 2300;
    hear();
    expect(states().slice(0, 2)).toEqual([
      ['openai', 'serving', 'real'],
      ['anthropic', 'absent', 'unknown'],
    ]);
  });

  it('has all that a heartbeat tells, with times in place of ages', () => {
    nowMs = 100_000;
    const calls = { count: 4, errorRate: 0.5, rateLimitRate: 0.25, latencyMs: { p50: 1, p95: 2 } };
    const rest = {
      calls,
      defaultModel: 'm',
      models: ['n-*'],
      settingsVersion: 7,
      release: '1.2.3',
      host: 'h',
    };
    hear({
      ...rest,
      state: 'paused',
      pausedBy: 'clock',
      oldestJobMs: 5000,
      lastError: { code: 'provider_error', agoMs: 2000, sinceMs: 60_000 },
      breakers: [
        { model: null, state: 'half-open', nextProbeMs: 0, reason: 'credentials' },
        { model: 'm', state: 'limited', nextProbeMs: 3000, reason: 'provider_rate_limited' },
        { model: 'n', state: 'half-open', nextProbeMs: 0, reason: 'timeout', user: 'id' },
      ],
    });
    expect(worker()).toEqual({
      ...rest,
      worker: 'one',
      state: 'paused',
      pausedBy: 'clock',
      concurrency: 10,
      inFlight: 3,
      meanJobMs: 1000,
      oldestJobSince: at(95_000),
      lastError: { code: 'provider_error', at: at(98_000), since: at(40_000) },
      breakers: [
        { model: null, state: 'half-open', reason: 'credentials', since: at(100_000) },
        {
          ...{ model: 'm', state: 'limited', reason: 'provider_rate_limited' },
          ...{ nextProbeAt: at(103_000), since: at(100_000) },
        },
        { model: 'n', state: 'half-open', reason: 'timeout', user: 'id', since: at(100_000) },
      ],
      simulated: false,
    });
  });

  it('does not change while nothing happens, although each message takes another time to arrive', () => {
    const said = (elapsed: number) =>
      hear({
        oldestJobMs: 1000 + elapsed,
        lastError: { code: 'provider_error', agoMs: 500 + elapsed, sinceMs: 500 + elapsed },
        breakers: [{ model: 'm', state: 'open', nextProbeMs: 30_000 - elapsed, reason: 'provider_error' }],
      });
    said(0);
    const before = JSON.stringify(openai());
    for (const [sentAt, delayMs] of [
      [1000, 80],
      [2000, 3],
      [3000, 400],
    ] as const) {
      nowMs = sentAt + delayMs;
      said(sentAt);
      expect(JSON.stringify(openai())).toBe(before);
    }
  });

  it('says since when a breaker has been in its state', () => {
    const breaker = (state: 'open' | 'half-open') =>
      hear({ breakers: [{ model: 'm', state, nextProbeMs: 0, reason: 'provider_error' }] });
    breaker('open');
    for (nowMs = 1000; nowMs <= 3000; nowMs += 1000) breaker('half-open');
    expect(worker()?.breakers).toMatchObject([{ state: 'half-open', since: at(1000) }]);
  });

  it('says it of each entry of a model: of all users, of one, and of a limit', () => {
    const entry = { model: 'm', state: 'limited', nextProbeMs: 0, user: 'id' } as const;
    hear({ breakers: [entry] });
    nowMs = 1000;
    hear({
      breakers: [{ model: 'm', state: 'limited', nextProbeMs: 0 }, { ...entry, state: 'open' }, entry],
    });
    nowMs = 2000;
    hear({
      breakers: [{ model: 'm', state: 'limited', nextProbeMs: 0 }, { ...entry, state: 'open' }, entry],
    });
    const [ofAll, refused, limited] = worker()?.breakers ?? [];
    expect([ofAll?.since, refused?.since, limited?.since]).toEqual([at(1000), at(1000), at(0)]);
  });

  describe('with the chats that ended while their callers waited', () => {
    const say = (ended: number, failed: number, more: Partial<EndedChats> = {}, process = 'api') =>
      heartbeats.addChats(process, [
        { provider: 'openai', ended, failed, ...(failed > 0 && { code: 'provider_error' }), ...more },
      ]);

    it.each([
      [1, 1, false],
      [9, 9, false],
      [10, 4, false],
      [10, 5, true],
      [117, 87, true],
      [43, 37, true],
      [43, 21, false],
    ])('of %d chats %d failed -> failing: %s', (ended, failed, isFailing) => {
      hear();
      say(ended, failed);
      expect(openai()?.chats).toMatchObject({ ended, failed });
      expect(openai()?.failing !== undefined).toBe(isFailing);
    });

    it('all calls of a quiet pool failed -> it is not failing', () => {
      const calls = { count: 500, errorRate: 1, rateLimitRate: 0 };
      hear({ calls, lastError: { code: 'provider_error', agoMs: 0, sinceMs: 0 } });
      expect(openai()).not.toHaveProperty('failing');
    });

    it('are at several API processes -> they add up, and the code is that of most', () => {
      hear();
      say(6, 2, { code: 'timeout' }, 'one');
      say(6, 3, { code: 'overloaded' }, 'two');
      expect(openai()).not.toHaveProperty('failing');
      say(7, 4, { code: 'overloaded' }, 'two');
      expect(openai()).toMatchObject({ chats: { ended: 13, failed: 6 } });
      say(6, 3, { code: 'timeout' }, 'one');
      expect(openai()?.failing).toEqual({ code: 'overloaded', since: at(0) });
    });

    it('failed with one model alone -> the model is named', () => {
      hear();
      say(20, 12, { model: 'broken' }, 'one');
      say(20, 0, {}, 'two');
      say(20, 18, { model: 'broken' }, 'three');
      expect(openai()).toMatchObject({ failing: { code: 'provider_error' }, chats: { model: 'broken' } });
      for (const other of [{ model: 'another' }, {}]) {
        say(20, 18, other, 'three');
        expect(openai()?.chats?.model).toBeUndefined();
      }
    });

    it('fail for a while -> since when is said, and anew after they were well', () => {
      hear();
      for (nowMs = 1000; nowMs <= 3000; nowMs += 1000) say(10, 10);
      hear();
      expect(openai()?.failing?.since).toBe(at(1000));
      say(30, 10);
      expect(openai()).not.toHaveProperty('failing');
      nowMs = 5000;
      hear();
      say(30, 20);
      expect(openai()?.failing?.since).toBe(at(5000));
    });

    it('its workers take no jobs -> the state says why', () => {
      say(10, 10);
      hear({ state: 'paused', pausedBy: 'operator' });
      expect(openai()).toMatchObject({ state: 'paused', chats: { ended: 10 } });
      expect(openai()).not.toHaveProperty('failing');
      hear({ state: 'probing' });
      expect(openai()).toHaveProperty('failing');
    });

    it('their API process has none left, or is gone for a minute -> they no longer count', () => {
      nowMs = 1000;
      say(10, 10);
      say(5, 5, {}, 'two');
      heartbeats.addChats('api', []);
      expect(openai()?.chats).toMatchObject({ ended: 5 });
      nowMs = 61_001;
      expect(openai()).not.toHaveProperty('chats');
    });

    it('are said by ever new processes -> the memory does not fill, and those that go on count', () => {
      hear();
      for (let n = 0; n < 1100; n += 1) {
        say(1, 0, {}, `new-${n}`);
        if (n % 200 === 0) say(5000, 0, {}, 'ours');
      }
      expect(openai()?.chats).toMatchObject({ ended: 5999 });
    });
  });

  it('shows a silent worker, drops it after a minute or when it stops, and takes it back', () => {
    hear();
    nowMs = 500;
    hear({ worker: 'two', concurrency: 5, inFlight: 1 });
    expect(openai()).toMatchObject({ concurrency: 15, inFlight: 4, state: 'serving' });
    nowMs = 2500;
    expect(openai()).toMatchObject({ concurrency: 5, inFlight: 1, state: 'serving' });
    expect(openai()?.workers).toMatchObject([
      { worker: 'one', state: 'silent', silentSince: at(0), inFlight: 3 },
      { worker: 'two', state: 'serving' },
    ]);
    expect(openai()?.workers[1]).not.toHaveProperty('silentSince');
    nowMs = 60_100;
    expect(openai()).toMatchObject({ state: 'silent', workers: [{ worker: 'two', state: 'silent' }] });
    nowMs = 60_600;
    expect(openai()).toMatchObject({ state: 'absent', workers: [] });
    hear();
    expect(worker()).toMatchObject({ state: 'serving' });
    hear({ state: 'stopped' });
    expect(openai()).toMatchObject({ state: 'absent', workers: [] });
  });

  it('has the state of the best worker, and the kind that its workers say', () => {
    const said = () => [openai()?.state, openai()?.kind];
    expect(openai()?.kind).toBe('unknown');
    hear({ state: 'paused', simulated: true });
    expect(said()).toEqual(['paused', 'simulated']);
    hear({ worker: 'two', state: 'probing', simulated: true });
    expect(said()).toEqual(['probing', 'simulated']);
    hear({ worker: 'three', simulated: false });
    expect(said()).toEqual(['serving', 'mixed']);
  });

  it('does not call anybody silent or absent who cannot have been heard of during an outage', () => {
    hear();
    nowMs = 10_000;
    heartbeats.recordOutage();
    nowMs = 12_000;
    expect(describeProviders(heartbeats).map(({ state }) => state)).toEqual(Array(4).fill('unknown'));
    nowMs = 12_300;
    expect(openai()?.state).toBe('silent');
  });
});

describe('a hostile heartbeat', () => {
  it('is refused when a name or a list is longer than any of ours', () => {
    const long = 'x'.repeat(301);
    const breaker = { model: 'm', state: 'open', nextProbeMs: 1 };
    for (const changes of [
      { worker: long },
      { host: long },
      { release: long },
      { pausedBy: long },
      { breakers: Array(101).fill(breaker) },
      { breakers: [{ ...breaker, reason: long }] },
      { lastError: { code: long, agoMs: 0, sinceMs: 0 } },
    ])
      expect(poolHeartbeatSchema.safeParse({ ...base, ...changes }).success).toBe(false);
  });

  it('has chats with odd numbers or names -> those alone are left out', () => {
    const good = { provider: 'openai', ended: 2, failed: 1, code: 'x', model: 'm', ofALaterRelease: 1 };
    const odd = [
      { ended: -1 },
      { failed: 0.5 },
      { ended: 1e300 },
      { model: 'x'.repeat(301) },
      { provider: 'y' },
    ];
    const chats = [...odd.map((changes) => ({ ...good, ...changes })), good];
    const { ofALaterRelease: _, ...read } = good;
    expect(processHeartbeatSchema.parse({ v: 1, worker: 'api', pools: [], chats }).chats).toEqual([read]);
  });

  it('gives dates and numbers whatever numbers it has', () => {
    hear({
      concurrency: Number.MAX_VALUE,
      oldestJobMs: Number.MAX_VALUE,
      lastError: { code: 'x', agoMs: -Number.MAX_VALUE, sinceMs: 1e300 },
      breakers: [{ model: 'm', state: 'open', nextProbeMs: 1e300 }],
    });
    hear({ worker: 'two', concurrency: Number.MAX_VALUE });
    expect(openai()?.concurrency).toBe(Number.MAX_SAFE_INTEGER);
    expect(Date.parse(worker()?.breakers[0]?.nextProbeAt ?? '')).toBeGreaterThan(nowMs);
    expect(Date.parse(worker()?.lastError?.since ?? '')).not.toBeNaN();
  });

  it('of ever new workers does not fill the memory, and those that are heard of stay', () => {
    for (let n = 0; n < 1100; n += 1) {
      hear({ worker: `new-${n}`, models: Array(101).fill('m') });
      if (n % 200 === 0) hear({ worker: 'ours' });
    }
    const workers = openai()?.workers ?? [];
    expect(workers).toHaveLength(1000);
    expect(workers.map((each) => each.worker)).toContain('ours');
    expect(workers[0]?.models).toHaveLength(100);
  });
});
