import { randomBytes, randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import type { StoredImage, Turn } from '../../../shared/conversation.js';
import { withImages, writeBlob } from '../../../shared/queue/blobs.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { startRedisProcess } from '../../support/redis-process.js';
import { describeStores } from '../../support/shared-store.js';

const hour = 3_600_000;
const because = (name: string) =>
  expect.objectContaining({
    ...{ code: 'internal', retryable: true },
    cause: expect.objectContaining({ name }),
  });
const gone = because('BlobGone');

/** A random image of so many bytes. */
function create(bytes: number) {
  const sha256 = randomBytes(32).toString('hex');
  const part: StoredImage = { type: 'image', mediaType: 'image/png', sha256, bytes };
  return { sha256, part, bytes: randomBytes(bytes) };
}
const ask = (...images: StoredImage[]): Turn[] => [
  { role: 'system', content: 'Be short.' },
  { role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...images] },
];
const dataOf = (turns: readonly Turn[]) =>
  turns.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((part) => ('data' in part ? part.data : [])),
  );

describeStores('images in a $kind store', createRecordingLog().log, (shared) => {
  const write = (
    user: string,
    { sha256, bytes }: { sha256: string; bytes: Buffer },
    { store = shared.store, ttlMs = hour } = {},
  ) => writeBlob(store.blobs, { user, key: sha256 }, { bytes, ttlMs: () => ttlMs });
  const read = async (user: string, ...parts: StoredImage[]) =>
    dataOf(await withImages(shared.another.blobs, ask(...parts), user));

  it.each([1, 262_144, 262_145, 5_242_880])(
    '%i bytes -> come back as they were, with all else as it was',
    async (bytes) => {
      const [user, image] = [randomUUID(), create(bytes)];
      await write(user, image);
      const turns = ask(image.part, { ...image.part });
      const loaded = await withImages(shared.another.blobs, turns, user);
      const data = image.bytes.toString('base64');
      expect(loaded).toEqual(ask({ ...image.part, data }, { ...image.part, data }));
      expect(dataOf(turns)).toEqual([]);
      const inResult = (part: StoredImage): Turn[] => [
        { role: 'user', content: [{ type: 'tool_result', callId: 'a', content: [part] }] },
      ];
      const loadedInResult = await withImages(shared.another.blobs, inResult(image.part), user);
      expect(loadedInResult).toEqual(inResult({ ...image.part, data }));
    },
  );

  it('the same image of two users -> is kept apart', async () => {
    const [one, other, image] = [randomUUID(), randomUUID(), create(300_000)];
    await write(one, image);
    await expect(read(other, image.part)).rejects.toThrow(gone);
    await write(other, image, { ttlMs: 1 });
    expect(await read(one, image.part)).toEqual([image.bytes.toString('base64')]);
  });

  it('an image that is sent again -> is written once, and stays as long as the last one who sends it needs it', async () => {
    const [user, image] = [randomUUID(), create(600_000)];
    const writes = vi.spyOn(shared.store.blobs, 'write');
    await write(user, image);
    await write(user, image, { ttlMs: 2 * hour });
    // A shorter time changes nothing.
    await write(user, image, { ttlMs: 1 });
    expect(writes).toHaveBeenCalledTimes(3);
    writes.mockRestore();
    const lives = await livesOf(user);
    expect(lives).toHaveLength(3);
    expect(Math.min(...lives)).toBeGreaterThan(hour);
  });

  it('an image whose time is over -> is gone, and what is left of it is written again', async () => {
    const [user, image] = [randomUUID(), create(600_000)];
    await write(user, image, { ttlMs: 1 });
    await vi.waitFor(() => expect(read(user, image.part)).rejects.toThrow(gone), patience);
    const chunk = image.bytes.subarray(262_144, 524_288);
    await shared.store.blobs.write({ user, key: image.sha256 }, { n: 1, bytes: chunk, ttlMs: hour });
    await expect(read(user, image.part)).rejects.toThrow(gone);
    const name = { user, key: image.sha256 };
    expect(await shared.store.blobs.extend(name, { chunks: 3, ttlMs: hour })).toEqual(new Set([1]));
    await write(user, image);
    expect(await read(user, image.part)).toEqual([image.bytes.toString('base64')]);
  });

  it('images whose time is over -> leave nothing behind; in PostgreSQL they are not logged', async () => {
    const [user, short, long] = [randomUUID(), create(600_000), create(600_000)];
    await write(user, short, { ttlMs: 1 });
    await write(user, long);
    await vi.waitFor(async () => {
      await shared.store.blobs.removeEnded();
      expect(await livesOf(user)).toHaveLength(3);
    }, patience);
    expect(await read(user, long.part)).toEqual([long.bytes.toString('base64')]);
  });

  it('an image that PostgreSQL removes while it waits to have it stay -> is not there', async () => {
    if (shared.store.kind === 'redis') return;
    const [user, image] = [randomUUID(), create(1000)];
    const client = new pg.Client(shared.wire.url);
    await client.connect();
    onTestFinished(() => client.end());
    await write(user, image);
    await client.query('begin');
    await client.query('delete from bullmq.quillgate_images where user_id = $1', [user]);
    const name = { user, key: image.sha256 };
    const extended = shared.store.blobs.extend(name, { chunks: 1, ttlMs: hour });
    await vi.waitFor(async () => {
      const { rowCount } = await client.query(
        'select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))',
      );
      expect(rowCount).toBe(1);
    }, patience);
    await client.query('commit');
    expect(await extended).toEqual(new Set());
  });

  /** How long each chunk of the user's that the store has will stay, in milliseconds. */
  async function livesOf(user: string): Promise<number[]> {
    const { url } = shared.wire;
    if (shared.store.kind === 'redis') {
      const redis = new Redis(url);
      onTestFinished(() => redis.disconnect());
      const keys = await redis.keys(`*image.${user}.*`);
      return Promise.all(keys.map((key) => redis.pttl(key)));
    }
    const client = new pg.Client(url);
    await client.connect();
    try {
      const { rows } = await client.query(
        `select extract(epoch from ends_at - clock_timestamp())::float8 * 1000 as life, relpersistence as persistence
          from bullmq.quillgate_images, pg_class where relname = 'quillgate_images' and user_id = $1`,
        [user],
      );
      expect(rows.every(({ persistence }) => persistence === 'u')).toBe(true);
      return rows.map(({ life }) => life);
    } finally {
      await client.end();
    }
  }

  it('an image of another length -> is not taken for it', async () => {
    const [user, image] = [randomUUID(), create(1000)];
    await write(user, image);
    await expect(read(user, { ...image.part, bytes: 999 })).rejects.toThrow(gone);
  });

  it('many who write at once, from two processes, among them the same images -> all are read again', async () => {
    const user = randomUUID();
    const images = Array.from({ length: 8 }, () => create(1_000_000));
    const stores = [shared.store, shared.another];
    await Promise.all(
      stores.flatMap((store) => [...images, ...images].map((image) => write(user, image, { store }))),
    );
    const found = await Promise.all(images.map(({ part }) => read(user, part)));
    expect(found.flat()).toEqual(images.map(({ bytes }) => bytes.toString('base64')));
  });

  it('a store that is down -> nothing is written or read until it is back', async () => {
    const [user, image] = [randomUUID(), create(600_000)];
    await shared.wire.cut();
    await expect(write(user, image)).rejects.toThrow();
    await expect(withImages(shared.store.blobs, ask(image.part), user)).rejects.toThrow(
      because('BlobUnreadable'),
    );
    await shared.wire.mend();
    await vi.waitFor(() => write(user, image), patience);
    expect(await read(user, image.part)).toEqual([image.bytes.toString('base64')]);
  });

  it('a blob that is removed before its time -> leaves nothing, and others of its user stay', async () => {
    const [user, gonePart, image] = [randomUUID(), create(600_000), create(600_000)];
    for (const each of [gonePart, image]) await write(user, each);
    await shared.another.blobs.remove({ user, key: gonePart.sha256 }, { chunks: 3 });
    await expect(read(user, gonePart.part)).rejects.toThrow(gone);
    expect(await livesOf(user)).toHaveLength(3);
    expect(await read(user, image.part)).toEqual([image.bytes.toString('base64')]);
  });

  it('a store that goes away between two chunks -> what it has is not written again', async () => {
    const [user, image] = [randomUUID(), create(600_000)];
    const written: number[] = [];
    const write = shared.store.blobs.write.bind(shared.store.blobs);
    const spied = vi.spyOn(shared.store.blobs, 'write').mockImplementation(async (name, chunk) => {
      if (chunk.n === 1 && !written.includes(1)) await shared.wire.cut();
      written.push(chunk.n);
      await write(name, chunk);
    });
    const name = { user, key: image.sha256 };
    const writing = () => writeBlob(shared.store.blobs, name, { bytes: image.bytes, ttlMs: () => hour });
    await expect(writing()).rejects.toThrow();
    await shared.wire.mend();
    await vi.waitFor(writing, patience);
    spied.mockRestore();
    expect(written.filter((n) => n === 0)).toHaveLength(1);
    expect(await read(user, image.part)).toEqual([image.bytes.toString('base64')]);
  });

  it('a store that has lost all of them, as PostgreSQL after a crash -> gone, and can be written again', async () => {
    const [user, image] = [randomUUID(), create(600_000)];
    await write(user, image);
    await empty();
    await expect(read(user, image.part)).rejects.toThrow(gone);
    await write(user, image);
    expect(await read(user, image.part)).toEqual([image.bytes.toString('base64')]);
  });

  it('a Redis without memory -> nothing is written, and what is there can be read and removed', async () => {
    if (shared.store.kind === 'postgres') return;
    // Its own, because other files use the shared one meanwhile.
    const own = await startRedisProcess();
    const url = `redis://127.0.0.1:${own.port}`;
    const store = openQueueStore(parseConfig({ REDIS_URL: url }, 'config'), createRecordingLog().log);
    onTestFinished(() => store.close().then(own.stop));
    const [image, other] = [create(600_000), create(600_000)].map(({ sha256: key, bytes }) => {
      const name = { user: 'me', key };
      return { name, write: () => writeBlob(store.blobs, name, { bytes, ttlMs: () => hour }) };
    });
    await image?.write();
    await own.command('CONFIG', 'SET', 'maxmemory', '1');
    await expect(other?.write()).rejects.toThrow('OOM');
    const name = image?.name ?? expect.unreachable();
    expect(await store.blobs.read(name, { chunks: 3 })).not.toContain(undefined);
    await store.blobs.remove(name, { chunks: 3 });
    expect(await store.blobs.read(name, { chunks: 3 })).toEqual([undefined, undefined, undefined]);
  });

  async function empty(): Promise<void> {
    if (shared.store.kind === 'redis') {
      const redis = new Redis(shared.url);
      await redis.flushdb();
      return redis.disconnect();
    }
    const client = new pg.Client(shared.url);
    await client.connect();
    await client.query('truncate bullmq.quillgate_images');
    await client.end();
  }
});
