import { createHash } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { moveToActive } from 'bullmq/dist/esm/scripts/moveToActive-11.js';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startWhenFetched } from '../../../shared/queue/patches/main-loop.js';
import { defineTakeJobs, RedisWorker } from '../../../shared/queue/patches/redis-worker.js';
import { connectRedis } from '../../../shared/queue/stores/redis-connection.js';
import { parseRedisUrl } from '../../../shared/urls/redis-url.js';
import { patience } from '../../support/patience.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { openWire, type Wire } from '../../support/wire.js';

/** Longer than a test: an idle worker then asks only when it is woken. */
const drainDelay = 60;
const keysOfTake = String(moveToActive.keys);

describe('what RedisWorker overrides', () => {
  it('a new release of BullMQ -> look at it again, then write the new digest here', () => {
    const { mainLoop, _getNextJob, moveToActive: fetch, nextJobFromJobData } = Worker.prototype as never;
    const hash = createHash('sha256').update(moveToActive.content);
    for (const method of [mainLoop, _getNextJob, fetch, nextJobFromJobData]) hash.update(String(method));
    expect(hash.digest('hex').slice(0, 16)).toBe('979d7de4e282d4d6');
  });
});

describe('RedisWorker', () => {
  let server: RedisProcess;
  let redis: Redis;
  let queue: Queue;

  beforeAll(async () => {
    server = await startRedisProcess();
  });
  afterAll(() => server?.stop());

  beforeEach(() => {
    redis = connect(server.port);
    queue = new Queue('jobs', { connection: redis, skipVersionCheck: true, skipMetasUpdate: true });
    return async () => {
      await redis.flushall();
      redis.disconnect();
    };
  });

  function connect(port: number): Redis {
    const connection = connectRedis(parseRedisUrl(`redis://127.0.0.1:${port}`), 'blocking') as Redis;
    return connection.on('error', () => undefined);
  }

  const add = (count: number) =>
    queue.addBulk(
      Array.from({ length: count }, (_, n) => ({ name: 'job', data: {}, opts: { jobId: `job-${n}` } })),
    );

  function work(
    run: (id: string) => Promise<void>,
    { concurrency = 1000, port = server.port, autorun = true } = {},
  ): Worker {
    const connection = connect(port);
    defineTakeJobs(connection);
    const settings = { connection, concurrency, drainDelay, runRetryDelay: 10, autorun };
    const worker = startWhenFetched(new RedisWorker('jobs', ({ id = '' }) => run(id), settings));
    onTestFinished(async () => {
      await worker.close(true);
      connection.disconnect();
    });
    return worker.on('error', () => undefined);
  }

  /** The commands that the workers send from now on: `take`, `wait` and others. */
  async function watch(): Promise<string[]> {
    const monitor = await redis.monitor();
    onTestFinished(() => monitor.disconnect());
    const commands: string[] = [];
    monitor.on('monitor', (_time: string, [name = '', , keys]: string[], source: string) => {
      if (source === 'lua') return;
      if (name === 'bzpopmin') commands.push('wait');
      else if (name.startsWith('eval') && keys === keysOfTake) commands.push('take');
    });
    return commands;
  }

  it('a job that comes alone -> one trip, which tells that there is no other', async () => {
    const commands = await watch();
    const ended = Promise.withResolvers<string>();
    work(async (id) => {
      await expect.poll(() => commands.at(-1), patience).toBe('wait');
      ended.resolve(id);
    });
    await expect.poll(() => commands.at(-1), patience).toBe('wait');
    commands.length = 0;
    await add(1);
    expect(await ended.promise).toBe('job-0');
    expect(commands).toEqual(['take', 'wait']);
    expect(await redis.exists('bull:jobs:marker')).toBe(0);
  });

  it('many jobs -> twice as many in each trip', async () => {
    await add(100);
    const commands = await watch();
    const [running, ending] = [new Set<string>(), Promise.withResolvers<void>()];
    work((id) => {
      running.add(id);
      return ending.promise;
    });
    await expect.poll(() => running.size, patience).toBe(100);
    // 2, 4, 8, 16, 32, and 38 of 64.
    await expect.poll(() => commands.filter((command) => command === 'take').length, patience).toBe(6);
    const locks = await redis.mget([...running].map((id) => `bull:jobs:${id}:lock`));
    expect(new Set(locks).size).toBe(100);
    ending.resolve();
  });

  it('more jobs than there is room for -> no more are taken at once, and the rest later', async () => {
    await add(20);
    const concurrency = 5;
    const active: number[] = [];
    const done = new Set<string>();
    work(
      async (id) => {
        active.push(await redis.llen('bull:jobs:active'));
        done.add(id);
      },
      { concurrency },
    );
    await expect.poll(() => done.size, patience).toBe(20);
    expect(Math.max(...active)).toBe(concurrency);
  });

  it.each(['close', 'pause'] as const)(
    'a %s that comes before the answer -> what was taken is run',
    async (stop) => {
      await add(3);
      const wire: Wire = await openWire(server.port);
      onTestFinished(wire.close);
      const run: string[] = [];
      const worker = work(async (id) => void run.push(id), { port: wire.port, autorun: false });
      await worker.waitUntilReady();
      wire.holdAnswers();
      const ended = worker.run();
      await expect.poll(() => redis.llen('bull:jobs:active'), patience).toBe(2);
      const stopped = stop === 'close' ? worker.close() : worker.pause(true);
      wire.thaw();
      await Promise.all([stopped, ...(stop === 'close' ? [ended] : [])]);
      await expect.poll(() => redis.llen('bull:jobs:active'), patience).toBe(0);
      expect(run).toEqual(['job-0', 'job-1']);
    },
  );

  it('a job that cannot be taken -> those taken before it are run', async () => {
    await add(1);
    await redis.set('bull:jobs:broken', 'no hash');
    await redis.lpush('bull:jobs:wait', 'broken');
    await queue.add('job', {}, { jobId: 'job-1' });
    const run = new Set<string>();
    work(async (id) => void run.add(id));
    await expect.poll(() => run, patience).toEqual(new Set(['job-0', 'job-1']));
  });
});
