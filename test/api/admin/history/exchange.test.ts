import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HistoryExchange } from '../../../../api/admin/history/exchange.js';
import { RecentRequests } from '../../../../api/admin/history/recent-requests.js';
import { sampleEveryMs, type TimedSample } from '../../../../api/admin/history/sample-log.js';
import type { RecentRequest } from '../../../../shared/contracts/history.js';
import type { HistoryAnswer } from '../../../../shared/protocol/history.js';
import { openBus, recentRequest } from '../../../support/history.js';
import { createRecordingLog } from '../../../support/recording-log.js';

let bus: ReturnType<typeof openBus>;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  // A cache takes the time 0 for none.
  vi.advanceTimersByTime(1);
  bus = openBus();
});
afterEach(() => void vi.useRealTimers());

const sample = (slot: number): TimedSample => ({
  ...{ slot, provider: 'openai', waiting: 1, active: 1, inFlight: 1, concurrency: 5 },
  ...{ arrivals: 2, ended: 2, failed: 1, queueMs: { p50: 1, p95: 2 }, providerMs: null },
});
/** The slot that was so many before the one that is under way. */
const slotAgo = (slots: number) => (Math.floor(Date.now() / sampleEveryMs) - slots) * sampleEveryMs;

/** An API process; `aheadMs` is how far its clock is ahead. */
async function open({ aheadMs = 0, isConnected = true } = {}) {
  const requests = new RecentRequests();
  const samples: TimedSample[] = [];
  const now = () => Date.now() + aheadMs;
  const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const { log } = createRecordingLog();
  const exchange = new HistoryExchange({ requests, samples: { list: () => samples }, log, now, delay });
  let isLost = (_message: Partial<HistoryAnswer>) => false;
  const subscribe: typeof bus.subscribe = (topic, schema, listener) =>
    bus.subscribe(topic, schema, (message) => isLost(message as object) || listener(message));
  const channel = { ...bus, subscribe, receive: subscribe };
  const connect = () => exchange.connect(channel, new AbortController().signal);
  if (isConnected) await connect();
  return {
    ...{ requests, samples, exchange, connect },
    /** Which messages do not come. */
    lose: (lost: typeof isLost) => {
      isLost = lost;
    },
    end: (own: Partial<RecentRequest> = {}, agoMs = 0) =>
      requests.add(recentRequest(own), { endedAt: now() - agoMs, isOwn: true }),
    ids: () => requests.list({ limit: 1000 }).map(({ id }) => id),
    heard: () => exchange.samples.flat(),
    /** Has an operator look at it, each second for so long. */
    look: async (seconds = 1) => {
      for (let n = 0; n < seconds; n += 1) {
        const seen = exchange.refresh();
        await vi.advanceTimersByTimeAsync(1000);
        await seen;
      }
    },
  };
}
const openTwo = () => Promise.all([open(), open()]);

/** An answer of another process, to the first who asked. */
const answer = (own: object) => {
  const [ask] = bus.published.map(({ message }) => message as { from: string });
  const message = { v: 1, from: 'y', after: 0, last: 1, requests: [], samples: [], ...own };
  return bus.publish(`history.${ask?.from}`, message);
};
/** Chats of each answer that has some. */
const sizes = () =>
  bus.published
    .map(({ message }) => (message as Partial<HistoryAnswer>).requests?.length ?? 0)
    .filter((size) => size > 0);
const asked = () => bus.published.filter(({ topic }) => topic === 'history.ask').length;
const { receivedAt: _, ...sentRequest } = recentRequest();
const { slot: __, ...sentSample } = sample(0);

describe('HistoryExchange', () => {
  it('an operator looks -> has the chats and samples of the others, whatever their clocks say', async () => {
    const aheadMs = 3_600_000_000;
    const [one, two] = [await open(), await open({ aheadMs })];
    const slots = [slotAgo(10), slotAgo(9)];
    two.samples.push(...slots.map((slot) => sample(slot + aheadMs)));
    two.end({ id: 'a', attempts: [], model: 'gpt', inputTokens: 7 });
    one.end({ id: 'b' });
    const receivedAt = new Date(Date.now() - 30).toISOString();
    await one.look();
    expect(one.ids().sort()).toEqual(['a', 'b']);
    const a = one.requests.list({ limit: 10 }).find(({ id }) => id === 'a');
    expect(a).toMatchObject({ receivedAt, model: 'gpt', inputTokens: 7, attempts: [], queuedMs: 1 });
    expect([one.exchange.processes, one.exchange.isPartial]).toEqual([2, false]);
    expect(two.ids()).toEqual(['a']);
    expect(one.heard().map(({ slot }) => slot)).toEqual(slots);
  });

  it('asks while an operator looks, for what is new -> stops soon after, and forgets the others', async () => {
    const [one, two] = await openTwo();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked()).toBe(0);
    two.end({ id: 'a' });
    await one.look();
    two.end({ id: 'b' });
    await one.look();
    expect(one.ids()).toHaveLength(2);
    const sent = bus.published.flatMap(({ message }) => (message as HistoryAnswer).requests ?? []);
    expect(sent.map(({ id }) => id)).toEqual(['a', 'b']);
    await vi.advanceTimersByTimeAsync(5000);
    const before = asked();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([asked(), one.ids(), one.exchange.processes]).toEqual([before, [], 1]);
  });

  it('the message with the samples is lost, or a process comes later -> they are asked for', async () => {
    const [one, two] = await openTwo();
    const old = sample(slotAgo(60));
    two.samples.push(old);
    let lost = 0;
    one.lose(({ samples }) => samples?.length === 1 && lost++ === 0);
    for (let n = 0; n < 201; n += 1) two.end({ id: `chat ${n}` });
    await one.look(2);
    expect(one.heard()).toEqual([old]);
    const three = await open();
    three.samples.push(old);
    await one.look(2);
    expect(one.heard()).toEqual([old, old]);
  });

  it('a process was not heard for a time -> asked for the samples of that time, and only then', async () => {
    const [one, two] = await openTwo();
    const [before, recent] = [sample(slotAgo(60)), sample(slotAgo(2))];
    two.samples.push(recent);
    await one.look();
    two.samples.unshift(before);
    await one.look(2);
    expect(one.heard()).toEqual([recent]);
    one.lose(() => true);
    await one.look(300);
    const missed = sample(slotAgo(40));
    two.samples.unshift(missed);
    one.lose(() => false);
    await one.look(2);
    expect(one.heard()).toEqual([recent, missed]);
  });

  it('a process dies without a word -> no longer counts, and what it had said is kept', async () => {
    const [one, two] = await openTwo();
    two.end({ id: 'a' });
    await one.look();
    expect(one.exchange.processes).toBe(2);
    two.lose(() => true);
    await one.look(4);
    expect([one.exchange.processes, one.ids()]).toEqual([1, ['a']]);
  });

  it('not connected yet, or the store is down -> knows only itself, and says so', async () => {
    const one = await open({ isConnected: false });
    one.end();
    await one.look();
    expect([one.exchange.processes, one.exchange.isPartial, one.ids()]).toEqual([1, true, ['chat']]);
    await one.connect();
    await one.look(2);
    expect(one.exchange.isPartial).toBe(false);
    bus.setDown(true);
    await one.look(2);
    expect(one.exchange.isPartial).toBe(true);
  });

  it('many chats -> all that are kept come at the first look, 200 in a message', async () => {
    const [one, two] = await openTwo();
    for (let n = 0; n < 1200; n += 1) two.end({ id: `chat ${n}` });
    await one.look();
    expect(one.ids()).toHaveLength(1000);
    expect(one.ids()).toContain('chat 1199');
    expect(sizes()).toEqual([200, 200, 200, 200, 200]);
  });

  it('long names -> messages far below what the relay takes, and the rest when it asks again', async () => {
    const [one, two] = await openTwo();
    for (let n = 0; n < 1000; n += 1) two.end({ id: `chat ${n}`, model: '\u0001'.repeat(200) });
    await one.look(10);
    expect(one.ids()).toHaveLength(1000);
    for (const { bytes } of bus.published) expect(bytes).toBeLessThan(256 * 1024);
    expect(Math.max(...sizes())).toBeGreaterThan(50);
  });

  it.each([0, 1, 2])(
    'message %i of three is lost -> what is in it and behind it is asked for again',
    async (lost) => {
      const [one, two] = await openTwo();
      for (let n = 0; n < 450; n += 1) two.end({ id: `chat ${n}` });
      let messages = 0;
      one.lose(({ requests }) => requests !== undefined && messages++ === lost);
      await one.look(2);
      expect(one.ids()).toHaveLength(450);
      expect(sizes().slice(3)).toEqual([200, 200, 50].slice(lost));
    },
  );

  it.each<[string, Partial<RecentRequest>, agoMs?: number]>([
    ['with a clock from another century', {}, 3e12],
    ['that waited for less than no time', { queueMs: -1 }],
    ['with a long id', { id: 'x'.repeat(65) }],
  ])('a chat %s -> is left out, and the others come', async (_, own, agoMs) => {
    const [one, two] = await openTwo();
    // It ended long ago, and took long, which is nothing odd.
    two.end({ id: 'before', endedMs: 2e9, queueMs: 2e9, inputTokens: 2e9 }, 365 * 86_400_000);
    two.end({ id: 'odd', ...own }, agoMs);
    two.end({ id: 'after' });
    await one.look();
    expect(one.ids().sort()).toEqual(['after', 'before']);
    expect(sizes()[0]).toBe(2);
  });

  it('an answer with providers that a newer release has -> what is known of it is taken', async () => {
    const one = await open();
    await one.look();
    const requests = ['another', 'openai'].map((provider) => ({
      ...{ ...sentRequest, id: provider, endedAgoMs: 0, provider },
    }));
    const samples = ['another', 'openai'].map((provider) => ({ ...sentSample, agoMs: 5000, provider }));
    await answer({ last: 2, requests, samples });
    expect([one.ids(), one.heard().length]).toEqual([['openai'], 1]);
  });

  it('a process asks without a pause -> is answered once in half a second', async () => {
    const two = await open();
    two.end();
    const ask = () => bus.publish('history.ask', { v: 1, from: 'x', known: {} });
    const answers = () => bus.published.filter(({ topic }) => topic === 'history.x').length;
    for (let n = 0; n < 100; n += 1) await ask();
    await vi.advanceTimersByTimeAsync(499);
    await ask();
    expect(answers()).toBe(1);
    await vi.advanceTimersByTimeAsync(2);
    await ask();
    await vi.advanceTimersByTimeAsync(1);
    expect(answers()).toBe(2);
  });

  it.each<[string, object, processes: number]>([
    ['an answer of too many chats', { requests: Array.from({ length: 201 }, () => ({})) }, 1],
    ['an answer of a newer release', { v: 99 }, 1],
    ['a chat from the future', { requests: [{ ...sentRequest, endedAgoMs: -1 }] }, 2],
  ])('%s -> is not taken', async (_, own, processes) => {
    const one = await open();
    await one.look();
    await answer(own);
    expect([one.exchange.processes, one.ids()]).toEqual([processes, []]);
  });

  it('liars -> no more is kept of them than of others', async () => {
    const one = await open();
    await one.look();
    const many = (count: number, make: (n: number) => object) =>
      Array.from({ length: count }, (_, n) => make(n));
    for (let n = 0; n < 60; n += 1) {
      const requests = n < 10 ? many(200, (k) => ({ ...sentRequest, id: `${n} ${k}`, endedAgoMs: 1e9 })) : [];
      const samples = n < 58 ? [] : many(700, (k) => ({ ...sentSample, agoMs: k * sampleEveryMs }));
      await answer({ from: `liar ${n}`, last: Number.MAX_SAFE_INTEGER, requests, samples });
    }
    one.end({ id: 'own' });
    expect(one.exchange.processes).toBe(51);
    expect(one.requests.after(0).length).toBeLessThanOrEqual(1250);
    expect(Math.max(...one.exchange.samples.map(({ length }) => length))).toBeLessThanOrEqual(484);
    expect(one.ids()[0]).toBe('own');
  });
});
