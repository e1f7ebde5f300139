import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../shared/config.js';
import { migrateQueueStore, openQueueStore, type QueueStore, StoreDefect } from '../../shared/queue.js';
import { createRecordingLog } from '../support/recording-log.js';
import { findStores, freshStore, type StoreServer } from '../support/stores.js';
import { openWire, openWireTo, type Wire } from '../support/wire.js';

const stores = await findStores();
/** As promised for a store that cannot be reached. */
const promisedMs = 3000;

const configOf = (variables: Record<string, string>) => parseConfig(variables, 'config');

/** The error, if it came within the time promised. */
async function failure(work: Promise<unknown>): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve('still trying'), promisedMs);
  const settled = work.then(
    () => 'succeeded',
    (error: unknown) => error,
  );
  return Promise.race([settled, promise]).finally(() => clearTimeout(timer));
}

describe.each(stores.filter(({ name }) => name !== 'postgres-container'))('a $name store', (choice) => {
  const { name, servedBy, missing } = choice;
  if (servedBy === undefined) return it.skip(`(${missing})`);

  let server: StoreServer;
  let stopServer: () => Promise<void>;
  let wire: Wire;
  let url: URL;
  let opened: QueueStore[];
  let logged: ReturnType<typeof createRecordingLog>;

  beforeAll(async () => {
    ({ server, stop: stopServer } = await choice.start());
    wire = await openWireTo(server.url);
  });
  afterAll(async () => {
    await wire?.close();
    await stopServer?.();
  });

  beforeEach(async () => {
    const variables = await freshStore(server);
    await migrateQueueStore(configOf(variables));
    url = new URL(variables.REDIS_URL ?? variables.DATABASE_URL ?? '');
    opened = [];
    logged = createRecordingLog();
    return async () => {
      wire.thaw();
      await Promise.all(opened.map((store) => store.close()));
    };
  });

  const open = (target: URL = url): QueueStore => {
    const variables = server.kind === 'redis' ? { REDIS_URL: target.href } : { DATABASE_URL: target.href };
    const store = openQueueStore(configOf(variables), logged.log);
    opened.push(store);
    return store;
  };
  const ready = async (target: URL = url): Promise<QueueStore> => {
    const store = open(target);
    expect(await store.whenReady(AbortSignal.timeout(promisedMs))).toBe(true);
    return store;
  };
  const through = (port: number): URL => Object.assign(new URL(url), { host: `127.0.0.1:${port}` });

  it('is ready once it answers', async () => {
    const store = await ready();
    expect(store.kind).toBe(server.kind);
    await store.check();
  });

  it('is not ready where nothing listens, and stops trying when told', async () => {
    const gone = await openWire(1);
    await gone.close();
    const store = open(through(gone.port));
    expect(await failure(store.check())).toBeInstanceOf(Error);
    const controller = new AbortController();
    const waiting = store.whenReady(controller.signal);
    controller.abort();
    expect(await waiting).toBe(false);
    expect(await store.whenReady(controller.signal)).toBe(false);
  });

  it('fails in time when the server takes connections and says nothing', async () => {
    wire.freeze();
    const store = open(through(wire.port));
    expect(await failure(store.check())).toBeInstanceOf(Error);
    expect(await failure(store.createQueue('silent').add('job', {}))).toBeInstanceOf(Error);
  });

  it('fails its check in time when the server falls silent, and recovers with it', async () => {
    const store = await ready(through(wire.port));
    wire.freeze();
    expect(await failure(store.check())).toBeInstanceOf(Error);
    wire.thaw();
    expect(await store.whenReady(AbortSignal.timeout(promisedMs))).toBe(true);
  });

  it('keeps a job under the id that it was given, once', async () => {
    const queue = (await ready()).createQueue('once');
    await queue.add('job', { n: 1 }, { jobId: 'a-b-c' });
    await queue.add('job', { n: 2 }, { jobId: 'a-b-c' });
    expect((await queue.getJob('a-b-c'))?.data).toEqual({ n: 1 });
    expect(await queue.getWaitingCount()).toBe(1);
  });

  if (name === 'redis') {
    it('fails to add a job in time when the server falls silent', async () => {
      const store = await ready(through(wire.port));
      const queue = store.createQueue('frozen');
      await queue.add('job', {});
      wire.freeze();
      const error = await failure(queue.add('job', {}));
      wire.thaw();
      expect(error).toBeInstanceOf(Error);
    });

    it('tells what to set when jobs could be evicted', async () => {
      const redis = new Redis(server.url);
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      const store = open();
      const impatient = AbortSignal.timeout(500);
      expect(await store.whenReady(impatient)).toBe(false);
      const error = await failure(store.check());
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
      redis.disconnect();
      expect(error).toBeInstanceOf(StoreDefect);
      expect(String(error)).toMatch(/noeviction.*allkeys-lru/);
      await store.check();
    });

    it('says in the log why it does not become ready', async () => {
      const redis = new Redis(server.url);
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      await open().whenReady(AbortSignal.timeout(500));
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
      redis.disconnect();
      expect(logged.lines.filter(({ level }) => Number(level) >= 40)).not.toEqual([]);
    });
  } else {
    it('is not ready before it is migrated, which any number may do at once', async () => {
      const { DATABASE_URL = '' } = await freshStore(server);
      const store = open(new URL(DATABASE_URL));
      expect(await failure(store.check())).toBeInstanceOf(Error);
      await Promise.all(Array.from({ length: 5 }, () => migrateQueueStore(configOf({ DATABASE_URL }))));
      await store.check();
    });
  }
});

describe('openQueueStore', () => {
  it('throws without an address', () => {
    expect(() => openQueueStore(configOf({}), createRecordingLog().log)).toThrow(TypeError);
  });
});
