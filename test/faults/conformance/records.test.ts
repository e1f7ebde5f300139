import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { QueueStore, RecordStore } from '../../../shared/queue/queue-store.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

const ttlMs = 60_000;

describeStores('records in $kind', createRecordingLog().log, (shared) => {
  let store: QueueStore;
  let wire: typeof shared.wire;
  let records: RecordStore;
  /** The same records, seen by another process. */
  let elsewhere: RecordStore;
  let key: string;

  beforeAll(() => {
    ({ store, wire } = shared);
    ({ records } = store);
    elsewhere = shared.another.records;
  });
  beforeEach(() => {
    key = `key.${randomUUID()}`;
  });

  /** Rows under keys that begin like this one. */
  const rowsOf = async (start: string): Promise<number> => {
    const client = new pg.Client({ connectionString: wire.url });
    await client.connect();
    const { rows } = await client.query(
      'select count(*)::int as rows from bullmq.quillgate_records where starts_with(key, $1)',
      [start],
    );
    await client.end();
    return rows[0].rows;
  };
  const ended = () => vi.waitUntil(async () => (await records.read(key)) === undefined, patience);

  it('what was created -> is read, alone and with others in their order', async () => {
    expect(await records.read(key)).toBeUndefined();
    expect(await records.create(key, { value: 'one', ttlMs })).toBe(true);
    await records.create(`${key}.2`, { value: 'two', ttlMs: 1 });
    await records.create(`${key}.3`, { value: 'three', ttlMs });
    await vi.waitUntil(async () => (await records.read(`${key}.2`)) === undefined, patience);
    expect(await elsewhere.read(key)).toBe('one');
    const keys = [`${key}.3`, `${key}.2`, `${key}.4`, key, key];
    expect(await elsewhere.readAll(keys)).toEqual(['three', undefined, undefined, 'one', 'one']);
    expect(await records.readAll([])).toEqual([]);
  });

  it('a record that is as expected -> is replaced, and no other', async () => {
    const change = { expected: 'one', value: 'two', ttlMs };
    expect(await records.replace(key, change)).toBe(false);
    expect(await records.read(key)).toBeUndefined();
    await records.create(key, { value: 'one', ttlMs });
    expect(await records.replace(key, { ...change, expected: 'On' })).toBe(false);
    expect(await records.replace(key, change)).toBe(true);
    expect(await records.replace(key, change)).toBe(false);
    expect(await elsewhere.read(key)).toBe('two');
  });

  it.each(['create', 'create after one that has ended', 'replace'])(
    'twenty who %s at once -> one succeeds',
    async (how) => {
      if (how === 'replace') await records.create(key, { value: 'one', ttlMs });
      if (how === 'create after one that has ended') {
        await records.create(key, { value: 'one', ttlMs: 20 });
        await ended();
        // A record that has ended counts as none, whether it was removed or not.
        expect(await records.replace(key, { expected: 'one', value: 'two', ttlMs })).toBe(false);
      }
      const written = await Promise.all(
        Array.from({ length: 20 }, (_, n) => {
          const [of, value] = [n % 2 ? records : elsewhere, `${n}`];
          if (how === 'replace') return of.replace(key, { expected: 'one', value, ttlMs });
          return of.create(key, { value, ttlMs });
        }),
      );
      expect(written.filter(Boolean)).toHaveLength(1);
      expect(await records.read(key)).toBe(`${written.indexOf(true)}`);
    },
  );

  it('a record without an end -> is kept; an end is given and taken away', async () => {
    expect(await records.create(key, { value: 'one' })).toBe(true);
    expect(await elsewhere.create(key, { value: 'two' })).toBe(false);
    expect(await records.replace(key, { expected: 'two', value: 'three' })).toBe(false);
    expect(await records.replace(key, { expected: 'one', value: 'two', ttlMs })).toBe(true);
    expect(await records.replace(key, { expected: 'two', value: 'three' })).toBe(true);
    await records.removeEnded();
    expect(await elsewhere.read(key)).toBe('three');
    expect(await records.replace(key, { expected: 'three', value: 'four', ttlMs: 20 })).toBe(true);
    await ended();
  });

  it('several who remove what has ended at once -> that is removed and nothing else', async () => {
    await elsewhere.create(`${key}.stays`, { value: 'stays', ttlMs });
    const create = (n: number) => records.create(`${key}.${n}`, { value: 'one', ttlMs: 1 });
    // A portion at a time: a long wait for a connection is refused.
    for (let first = 0; first < 1020; first += 20)
      await Promise.all(Array.from({ length: 20 }, (_, n) => create(first + n)));
    await records.create(key, { value: 'last', ttlMs: 1 });
    await ended();
    await Promise.all([records.removeEnded(), records.removeEnded(), elsewhere.removeEnded()]);
    expect(await records.read(`${key}.stays`)).toBe('stays');
    if (store.kind === 'postgres') expect(await rowsOf(key)).toBe(1);
  });

  it.each([
    ['a megabyte', 'x'.repeat(1_048_576)],
    ['a megabyte of wide characters', '語🎉'.repeat(150_000)],
    ['nothing', ''],
    [
      'every kind of character',
      '\u0001\u001F\u007F"\\\'%$1\u2028\uFFFF\uFEFFe\u0301 שלום 🏳️‍🌈 \u{10FFFF}\r\n\t ',
    ],
    ['JSON of what is no text elsewhere', JSON.stringify('\u0000 \uD800 \uDC00')],
  ])('%s -> every character is kept', async (_, value) => {
    expect(await records.create(key, { value, ttlMs })).toBe(true);
    expect(await elsewhere.read(key)).toBe(value);
    expect(await records.replace(key, { expected: value, value: `${value}!`, ttlMs })).toBe(true);
    expect(await elsewhere.read(key)).toBe(`${value}!`);
  });

  it.each([
    ['falls silent', () => wire.freeze(), () => wire.thaw()],
    ['has gone', () => wire.cut(), () => wire.mend()],
  ])('a server that %s -> every call fails before it is back, and works then', async (_, fail, mend) => {
    await fail();
    const calls: Promise<unknown>[] = [
      records.read(key),
      records.create(key, { value: 'one', ttlMs }),
      records.replace(key, { expected: 'one', value: 'two', ttlMs }),
    ];
    const outcomes = await Promise.allSettled(calls);
    await mend();
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    expect(await records.read(`${key}.`)).toBeUndefined();
  });
});
