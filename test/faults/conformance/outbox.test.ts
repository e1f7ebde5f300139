import { afterEach, beforeAll, expect, it } from 'vitest';
import {
  maxOutboxEntries,
  type Outbox,
  OutboxFull,
  type QueueStore,
} from '../../../shared/queue/queue-store.js';
import { patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

describeStores('the outbox in $kind', createRecordingLog().log, (shared) => {
  let store: QueueStore;
  let outbox: Outbox;
  /** The same outbox, seen by another process. */
  let elsewhere: Outbox;

  beforeAll(() => {
    ({ store } = shared);
    ({ outbox } = store);
    elsewhere = shared.another.outbox;
  });
  afterEach(async () => elsewhere.remove(await idsOf(2 * maxOutboxEntries)));

  const idsOf = async (limit: number) => (await elsewhere.read({ limit })).map(({ id }) => id);
  const textsOf = async (options: Parameters<Outbox['read']>[0]) =>
    (await elsewhere.read(options)).map(({ entry }) => entry);

  it('entries -> are read in the order in which they came, from the head or behind one', async () => {
    const many = Array.from({ length: 300 }, (_, n) => JSON.stringify({ n, text: '"\\\'{},語🎉\u0000\n' }));
    await outbox.append(['first']);
    await elsewhere.append(many);
    await outbox.append(['last']);
    await outbox.append([]);
    expect(await textsOf({ limit: 1000 })).toEqual(['first', ...many, 'last']);
    const found = await outbox.read({ limit: 200 });
    expect(found).toHaveLength(200);
    expect(await textsOf({ limit: 2, after: found[0]?.id })).toEqual(many.slice(0, 2));
    expect(await textsOf({ limit: 1000, after: found.at(-1)?.id })).toEqual([...many.slice(199), 'last']);
  });

  it('entries that are removed, also twice -> are gone, and the others stay', async () => {
    await outbox.append(['one', 'two', 'three']);
    const [one, two, three] = await idsOf(3);
    await Promise.all([outbox.remove([one ?? '', three ?? '']), elsewhere.remove([three ?? ''])]);
    await outbox.remove([]);
    expect(await outbox.read({ limit: 3 })).toEqual([{ id: two, entry: 'two' }]);
  });

  it('its size -> how many there are, and since when', async () => {
    expect(await outbox.size()).toEqual({ entries: 0, oldestAt: undefined });
    const before = store.now();
    await outbox.append(['one', 'two']);
    const size = await elsewhere.size();
    expect(size.entries).toBe(2);
    // The clock of the store is known to some milliseconds.
    expect(Math.abs((size.oldestAt ?? 0) - before)).toBeLessThan(patienceMs);
    expect(Number.isInteger(size.oldestAt)).toBe(true);
  });

  it('more entries than it takes -> none of them is kept, until others are removed', async () => {
    const batch = Array.from({ length: maxOutboxEntries / 10 }, (_, n) => `${n}`);
    for (let n = 0; n < 9; n += 1) await outbox.append(batch);
    await outbox.append(batch.slice(1));
    await expect(outbox.append(['one', 'two'])).rejects.toThrow(OutboxFull);
    await outbox.append(['last']);
    await expect(elsewhere.append(['one'])).rejects.toThrow(OutboxFull);
    // The first one stays.
    await outbox.remove((await idsOf(3)).slice(1));
    await elsewhere.append(['one', 'two']);
    await expect(outbox.append(['three'])).rejects.toThrow(OutboxFull);
    expect((await outbox.size()).entries).toBe(maxOutboxEntries);
  });

  it.each([
    ['falls silent', () => shared.wire.freeze(), () => shared.wire.thaw()],
    ['has gone', () => shared.wire.cut(), () => shared.wire.mend()],
  ])('a server that %s -> every call fails before it is back', async (_, fail, mend) => {
    await fail();
    const calls = [
      outbox.append(['lost']),
      outbox.read({ limit: 1 }),
      outbox.remove(['1']),
      outbox.size(),
    ] as const;
    const outcomes = await Promise.allSettled(calls);
    await mend();
    expect(outcomes.map(({ status }) => status)).toEqual(calls.map(() => 'rejected'));
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });
});
