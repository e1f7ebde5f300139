import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { HistoryExchange } from '../../../../api/admin/history/exchange.js';
import { RecentRequests } from '../../../../api/admin/history/recent-requests.js';
import { sampleEveryMs, type TimedSample } from '../../../../api/admin/history/sample-log.js';
import type { RecentRequest } from '../../../../shared/history.js';
import type { HistoryAnswer } from '../../../../shared/protocol/history.js';
import { openBus, recentRequest } from '../../../support/history.js';
import { patience } from '../../../support/patience.js';
import { createRecordingLog } from '../../../support/recording-log.js';

const askEveryMs = 20;
let bus: ReturnType<typeof openBus>;
beforeEach(() => {
  bus = openBus();
});

const sample = (slot: number): TimedSample => ({
  ...{ slot, provider: 'openai', waiting: 1, active: 1, inFlight: 1, concurrency: 5 },
  ...{ arrivals: 2, ended: 2, failed: 1, queueMs: { p50: 1, p95: 2 }, providerMs: null },
});

const slotNow = () => Math.floor(Date.now() / sampleEveryMs) * sampleEveryMs;

/** An API process; `aheadMs` is how far its clock is ahead. */
async function open({ aheadMs = 0, isConnected = true } = {}) {
  const requests = new RecentRequests();
  const samples: TimedSample[] = [];
  const now = () => Date.now() + aheadMs;
  const { log } = createRecordingLog();
  const exchange = new HistoryExchange({ requests, samples: { list: () => samples }, log, now, askEveryMs });
  let isDead = false;
  let isLost = (_message: Partial<HistoryAnswer>) => false;
  const subscribe: typeof bus.subscribe = (topic, schema, listener) =>
    bus.subscribe(topic, schema, (message) => isDead || isLost(message as object) || listener(message));
  const channel = { ...bus, subscribe, receive: subscribe };
  const connect = () => exchange.connect(channel, new AbortController().signal);
  if (isConnected) await connect();
  const die = () => {
    isDead = true;
  };
  const lose = (lost: typeof isLost) => {
    isLost = lost;
  };
  const end = (own: Partial<RecentRequest> = {}, agoMs = 0) =>
    requests.add(recentRequest(own), { endedAt: now() - agoMs, isOwn: true });
  const ids = () => requests.list({ limit: 1000 }).map(({ id }) => id);
  /** Waits, as somebody who looks all the time, until the check holds. */
  const sees = (check: () => void) =>
    vi.waitFor(() => {
      exchange.touch();
      check();
    }, patience);
  return { requests, samples, exchange, end, ids, connect, die, lose, sees };
}

const openTwo = () => Promise.all([open(), open()]);

/** Where the first who asked gets answers. */
const answerTopic = () => {
  const [ask] = bus.published.map(({ message }) => message as { from: string });
  return `history.${ask?.from}`;
};
/** An answer of another process. */
const answer = (own: object) =>
  bus.publish(answerTopic(), { v: 1, from: 'y', after: 0, last: 1, requests: [], samples: [], ...own });
/** Chats of each answer. */
const sizes = () =>
  bus.published.flatMap(({ message }) => (message as Partial<HistoryAnswer>).requests?.length ?? []);
const asked = () => bus.published.filter(({ topic }) => topic === 'history.ask').length;

describe('HistoryExchange', () => {
  it('has the chats of the others when somebody looks, whatever their clocks say', async () => {
    const one = await open();
    const two = await open({ aheadMs: 3_600_000 });
    two.end({ id: 'a', attempts: [], model: 'gpt', inputTokens: 7 });
    one.end({ id: 'b' });
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.ids().sort()).toEqual(['a', 'b']), patience);
    const a = one.requests.list({ limit: 10 }).find(({ id }) => id === 'a');
    expect(a).toMatchObject({ id: 'a', model: 'gpt', inputTokens: 7, attempts: [], queuedMs: 1 });
    expect(Math.abs(Date.parse(a?.receivedAt ?? '') + 30 - Date.now())).toBeLessThan(20_000);
    await one.sees(() => expect([one.exchange.processes, one.exchange.isPartial]).toEqual([2, false]));
    expect(two.ids()).toEqual(['a']);
  });

  it('asks only while somebody looks, and then for what is new', async () => {
    const [one, two] = await openTwo();
    expect(asked()).toBe(0);
    two.end({ id: 'a' });
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.ids()).toEqual(['a']), patience);
    two.end({ id: 'b' });
    await one.sees(() => expect(one.ids()).toHaveLength(2));
    const sent = bus.published.flatMap(({ message }) => (message as HistoryAnswer).requests ?? []);
    expect(sent.map(({ id }) => id)).toEqual(['a', 'b']);
    await vi.waitFor(
      async () => {
        const before = asked();
        await delay(5 * askEveryMs);
        expect(asked()).toBe(before);
      },
      { ...patience, interval: 1 },
    );
  });

  it('puts samples into the slots of its own clock', async () => {
    const one = await open();
    const two = await open({ aheadMs: 1_000_000_000 });
    const slot = slotNow() - 10 * sampleEveryMs;
    two.samples.push(sample(slot + 1_000_000_000), sample(slot + 1_000_000_000 + sampleEveryMs));
    await one.exchange.refresh();
    await vi.waitFor(() => {
      const slots = one.exchange.samples.flat().map((each) => each.slot);
      expect(slots).toEqual([slot, slot + sampleEveryMs]);
    }, patience);
  });

  it('has the samples of a process that is heard later than the others, or whose first message is lost', async () => {
    const [one, two] = await openTwo();
    const old = sample(slotNow() - 60 * sampleEveryMs);
    two.samples.push(old);
    let lost = 0;
    one.lose(({ samples }) => samples?.length === 1 && lost++ === 0);
    for (let n = 0; n < 201; n += 1) two.end({ id: `chat ${n}` });
    await one.exchange.refresh();
    await one.sees(() => expect(one.exchange.samples.flat()).toEqual([old]));
    const three = await open();
    three.samples.push(old);
    await one.sees(() => expect(one.exchange.samples.flat()).toEqual([old, old]));
  });

  it('asks for the samples of the time in which a process was not heard, however long it was, and only then', async () => {
    const { now } = performance;
    const past = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) - 300_000);
    onTestFinished(() => past.mockRestore());
    const [one, two] = await openTwo();
    const recent = sample(slotNow() - 2 * sampleEveryMs);
    two.samples.push(recent);
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.exchange.samples.flat()).toEqual([recent]), patience);
    const missed = sample(slotNow() - 60 * sampleEveryMs);
    two.samples.unshift(missed);
    const askAgain = async () => {
      const before = asked();
      await one.sees(() => expect(asked()).toBeGreaterThan(before + 1));
    };
    await askAgain();
    expect(one.exchange.samples.flat()).toEqual([recent]);
    one.lose(() => true);
    past.mockRestore();
    await askAgain();
    one.lose(() => false);
    await one.sees(() => expect(one.exchange.samples.flat()).toEqual([recent, missed]));
  });

  it('forgets a process that died without a word, and keeps what it had said', async () => {
    const [one, two] = await openTwo();
    two.end({ id: 'a' });
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.exchange.processes).toBe(2), patience);
    two.die();
    await one.sees(() => expect(one.exchange.processes).toBe(1));
    expect(one.ids()).toEqual(['a']);
  });

  it('knows only itself before it is connected and while the store is down, and says so', async () => {
    const one = await open({ isConnected: false });
    one.end();
    await one.exchange.refresh();
    expect([one.exchange.processes, one.exchange.isPartial, one.ids()]).toEqual([1, true, ['chat']]);
    await one.connect();
    bus.setDown(true);
    await delay(2 * askEveryMs);
    await one.exchange.refresh();
    expect(one.exchange.isPartial).toBe(true);
    bus.setDown(false);
    await one.sees(() => expect(one.exchange.isPartial).toBe(false));
  });

  it('sends at most 200 chats in a message, and all that are kept at once to whoever asks for the first time', async () => {
    const [one, two] = await openTwo();
    for (let n = 0; n < 1200; n += 1) two.end({ id: `chat ${n}` });
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.ids()).toHaveLength(1000), patience);
    expect(one.ids()).toContain('chat 1199');
    expect(sizes().filter((size) => size > 0)).toEqual([200, 200, 200, 200, 200]);
  });

  it('sends messages far below what the relay takes, however long the names are, and the rest when it is asked again', async () => {
    const [one, two] = await openTwo();
    for (let n = 0; n < 1000; n += 1) two.end({ id: `chat ${n}`, model: '\u0001'.repeat(200) });
    await one.exchange.refresh();
    await one.sees(() => expect(one.ids()).toHaveLength(1000));
    for (const { bytes } of bus.published) expect(bytes).toBeLessThan(256 * 1024);
    expect(Math.max(...sizes())).toBeGreaterThan(50);
  });

  it.each([0, 1, 2])('asks again for the chats of message %i of three when it is lost', async (lost) => {
    const [one, two] = await openTwo();
    for (let n = 0; n < 450; n += 1) two.end({ id: `chat ${n}` });
    let messages = 0;
    one.lose(({ requests }) => requests !== undefined && messages++ === lost);
    await one.exchange.refresh();
    await one.sees(() => expect(one.ids()).toHaveLength(450));
    expect(messages).toBeGreaterThan(3);
    const rest = sizes()
      .slice(3)
      .filter((size) => size > 0);
    // From the one that was lost on.
    expect(rest).toEqual([200, 200, 50].slice(lost));
  });

  it.each<[string, Partial<RecentRequest>, agoMs?: number]>([
    ['with a clock from another century', {}, 3e12],
    ['that waited for less than no time', { queueMs: -1 }],
    ['with a long id', { id: 'x'.repeat(65) }],
  ])('does without a chat %s, and has the others', async (_, own, agoMs) => {
    const [one, two] = await openTwo();
    two.end({ id: 'before' });
    two.end({ id: 'odd', ...own }, agoMs);
    two.end({ id: 'after' });
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.ids().sort()).toEqual(['after', 'before']), patience);
    expect(sizes()[0]).toBe(2);
  });

  it('has chats that ended long ago, and takes any number for the last', async () => {
    const [one, two] = await openTwo();
    two.end({ id: 'a', endedMs: 2e9, queueMs: 2e9, inputTokens: 2e9 }, 365 * 86_400_000);
    await one.exchange.refresh();
    await vi.waitFor(() => expect(one.ids()).toEqual(['a']), patience);
    await answer({ last: Number.MAX_SAFE_INTEGER });
    expect(one.exchange.processes).toBe(3);
  });

  it('takes what it knows of an answer that has chats and samples of providers which a newer release has', async () => {
    const one = await open();
    await one.exchange.refresh();
    const { receivedAt: _, ...sent } = recentRequest();
    const { slot: __, ...measured } = sample(0);
    const requests = [
      { ...sent, id: 'new', endedAgoMs: 0, provider: 'another' },
      { ...sent, id: 'known', endedAgoMs: 0 },
    ];
    const samples = [
      { ...measured, agoMs: 5000, provider: 'another' },
      { ...measured, agoMs: 5000 },
    ];
    await answer({ last: 2, requests, samples });
    expect(one.ids()).toEqual(['known']);
    expect(one.exchange.samples.flat()).toHaveLength(1);
  });

  it('answers one who asks without a pause not each time', async () => {
    const two = await open();
    two.end();
    const ask = { v: 1, from: 'x', known: {} };
    for (let n = 0; n < 100; n += 1) await bus.publish('history.ask', ask);
    await delay(1);
    expect(bus.published.filter(({ topic }) => topic === 'history.x').length).toBeLessThan(10);
  });

  it.each([
    ['of too many chats', { requests: Array.from({ length: 201 }, () => ({})) }],
    ['of a newer release', { v: 99 }],
  ])('takes no answer %s', async (_, own) => {
    const one = await open();
    await one.exchange.refresh();
    await answer(own);
    expect([one.exchange.processes, one.ids()]).toEqual([1, []]);
  });

  it('takes no chat from the future', async () => {
    const one = await open();
    await one.exchange.refresh();
    await answer({ requests: [{ ...recentRequest(), endedAgoMs: -1 }] });
    expect([one.exchange.processes, one.ids()]).toEqual([2, []]);
  });

  it('keeps no more of liars than of others', async () => {
    const one = await open();
    await one.exchange.refresh();
    const { receivedAt: _, ...sent } = recentRequest();
    for (let n = 0; n < 60; n += 1) {
      const requests = Array.from({ length: 200 }, (_, k) => ({ ...sent, id: `${n} ${k}`, endedAgoMs: 1e9 }));
      const { slot: __, ...measured } = sample(0);
      const samples = Array.from({ length: 700 }, (_, k) => ({ ...measured, agoMs: k * sampleEveryMs }));
      await answer({ from: `liar ${n}`, last: Number.MAX_SAFE_INTEGER, requests, samples });
    }
    one.end({ id: 'own' });
    expect(one.exchange.processes).toBeLessThanOrEqual(51);
    expect(one.requests.after(0).length).toBeLessThanOrEqual(1250);
    expect(Math.max(...one.exchange.samples.map(({ length }) => length))).toBeLessThanOrEqual(484);
    expect(one.ids()[0]).toBe('own');
  });
});
