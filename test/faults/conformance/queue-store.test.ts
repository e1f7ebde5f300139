import { once } from 'node:events';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { FleetLink } from '../../../api/fleet-link/fleet-link.js';
import { parseConfig } from '../../../shared/config/config.js';
import type { BackendCalls } from '../../../shared/queue/patches/postgres-adds.js';
import { aroundJobs } from '../../../shared/queue/patches/process-job.js';
import { HandedBack, Misconfiguration, type QueueStore } from '../../../shared/queue/queue-store.js';
import { openRelay } from '../../../shared/queue/relay.js';
import { migrateQueueStore, openQueueStore } from '../../../shared/queue/stores/open.js';
import { noLedger } from '../../support/entries.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { startRedisProcess } from '../../support/redis-process.js';
import { findStores, freshStore } from '../../support/stores.js';
import { openWire, openWireTo, type Wire } from '../../support/wire.js';

const schemaMissing = new Misconfiguration(
  'the schema is missing or older than this release: run quillgate migrate',
);
const configOf = (variables: Record<string, string>) => parseConfig(variables, 'config');

/** The error that the work ends with. */
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'succeeded',
    (error: unknown) => error,
  );

describe.each(findStores())('a $kind store', (server) => {
  const { kind: name } = server;
  let wire: Wire;
  let url: URL;
  let opened: QueueStore[];
  let logged: ReturnType<typeof createRecordingLog>;

  beforeAll(async () => {
    wire = await openWireTo(server.url);
  });
  afterAll(() => wire?.close());

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

  const open = (target: URL = url, now = Date.now): QueueStore => {
    const variables = server.kind === 'redis' ? { REDIS_URL: target.href } : { DATABASE_URL: target.href };
    const store = openQueueStore(configOf(variables), logged.log, now);
    opened.push(store);
    return store;
  };
  const ready = async (target: URL = url): Promise<QueueStore> => {
    const store = open(target);
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    return store;
  };
  /** A worker that says when it has begun, and ends when it is let go. */
  const hold = (store: QueueStore, name: string, settings = {}) => {
    const [started, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const run = () => {
      started.resolve();
      return ending.promise;
    };
    const worker = store.createWorker(name, run, { concurrency: 1, ...settings });
    return { worker, started: started.promise, end: () => ending.resolve('outcome') };
  };
  const connectPostgres = async () => {
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };
  const warnings = () => logged.lines.filter(({ level }) => Number(level) >= 40);
  const through = (port: number): URL => Object.assign(new URL(url), { host: `127.0.0.1:${port}` });

  it('a hundred who ask at once -> one look', async () => {
    const now = vi.fn(Date.now);
    const store = open(url, now);
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    // Each look compares the clocks, for which it reads ours twice.
    const looks = () => now.mock.calls.length / 2;
    const before = looks();
    await Promise.all(Array.from({ length: 100 }, () => store.check()));
    expect(looks() - before).toBe(1);
  });

  it('a store that becomes unavailable, and is back -> warns once of each', async () => {
    const store = await ready(through(wire.port));
    await wire.cut();
    await vi.waitFor(() => expect(warnings()).not.toEqual([]), patience);
    for (let time = 0; time < 5; time += 1) await failure(store.check());
    expect(warnings()).toMatchObject([
      {
        msg: 'the queue store is unavailable',
        reason: expect.stringMatching(/^the store cannot be reached/),
      },
    ]);
    await wire.mend();
    await vi.waitFor(() => expect(warnings()).toHaveLength(2), patience);
    expect(warnings()[1]).toMatchObject({
      msg: 'the queue store is available again',
      unavailableMs: expect.any(Number),
    });
  });

  it('an address where nothing listens -> is not ready, and stops trying when told', async () => {
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

  it.each(['before it was ever reached', 'when it was ready'])(
    'a server that falls silent %s -> all fails until it answers again',
    async (since) => {
      const store =
        since === 'when it was ready' ? await ready(through(wire.port)) : open(through(wire.port));
      wire.freeze();
      expect(await failure(store.check())).toBeInstanceOf(Error);
      expect(await failure(store.createQueue('silent').add('job', {}))).toBeInstanceOf(Error);
      wire.thaw();
      expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    },
  );

  it('what was opened while the server was away -> works when it is back', async () => {
    const store = await ready(through(wire.port));
    await wire.cut();
    const queue = store.createQueue('opened-early');
    expect(await failure(queue.add('job', {}))).toBeInstanceOf(Error);
    const ran = Promise.withResolvers<unknown>();
    const worker = store.createWorker('opened-early', async ({ data }) => ran.resolve(data), {});
    await failure(queue.getWaitingCount());
    await wire.mend();
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    await queue.add('job', { n: 1 });
    expect(await ran.promise).toEqual({ n: 1 });
    await worker.close();
    await queue.close();
  });

  it('a connection lost while a part is opened on it -> the store and the part go on', async () => {
    const store = await ready(through(wire.port));
    wire.holdAnswers();
    const before = wire.sent();
    const relay = store.createRelay({ namespace: 'test', name: 'test' });
    const queue = store.createQueue('cut-off');
    const adding = failure(queue.add('job', {}));
    relay.waitUntilReady().catch(() => undefined);
    // Both have asked something, and are not answered.
    await vi.waitUntil(() => wire.sent() >= before + 2, patience);
    await wire.cut();
    await wire.mend();
    wire.thaw();
    await adding;
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    await queue.add('job', {});
    await Promise.allSettled([queue.close(), relay.close()]);
  });

  it.each([-5000, 5000])('a clock that is %i ms off -> is not ready, and says what to do', async (offMs) => {
    const store = open(url, () => Date.now() + offMs);
    const error = await vi.waitFor(async () => {
      const found = await failure(store.check());
      expect(found).toBeInstanceOf(Misconfiguration);
      return found;
    }, patience);
    expect(String(error)).toMatch(/clock .* (5\.0|4\.9|5\.1) s (ahead of|behind) .*NTP/);
    expect(String(error)).toContain(offMs > 0 ? 'ahead of' : 'behind');
    const closer = open(url, () => Date.now() + offMs / 5);
    expect(await closer.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });

  it('a burst -> jobs are started before as many are fetched again', async () => {
    const store = await ready();
    const queue = store.createQueue('burst');
    const count = 20;
    await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'job', data: { n } })));
    let started = 0;
    const ending = Promise.withResolvers<void>();
    const run = () => {
      started++;
      return ending.promise;
    };
    const worker = store.createWorker('burst', run, { concurrency: count });
    const startedAtFetch: number[] = [];
    worker.on('active', () => startedAtFetch.push(started));
    await vi.waitFor(() => expect(started).toBe(count), patience);
    expect(startedAtFetch).toHaveLength(count);
    for (const [n, before] of startedAtFetch.entries()) expect(before).toBeGreaterThan(n / 2 - 1);
    ending.resolve();
    await worker.close();
  });

  it('jobs that wait -> BullMQ begins each by `processJob`, which gives the next one once it is done with it', async () => {
    const store = await ready();
    const queue = store.createQueue('begun');
    const jobIds = ['one', 'two'];
    await queue.addBulk(jobIds.map((jobId) => ({ name: 'job', data: {}, opts: { jobId } })));
    const begun: (string | undefined)[] = [];
    const worker = store.createWorker('begun', async () => begun.push('run'), {
      concurrency: 1,
      autorun: false,
    });
    const ended = Promise.withResolvers<void>();
    aroundJobs(worker, async ({ id }, _, process) => {
      begun.push(id);
      const next = await process();
      begun.push(`${await queue.getJobState(id ?? '')}, then ${next?.id}`);
      if (id === 'two') ended.resolve();
      return next;
    });
    const running = worker.run();
    await ended.promise;
    await worker.close();
    await running;
    expect(begun).toEqual(['one', 'run', 'completed, then two', 'two', 'run', 'completed, then undefined']);
  });

  it('a worker that closes while the connection is lost -> the outcome is stored', async () => {
    const queue = (await ready()).createQueue('closing');
    const store = await ready(through(wire.port));
    const { worker, started, end } = hold(store, 'closing');
    await queue.add('job', {}, { jobId: 'job' });
    await started;
    const closing = worker.close();
    await wire.cut();
    end();
    // Longer than the first attempt takes.
    for (let time = 0; time < 5; time += 1) await failure(store.check());
    await wire.mend();
    await closing;
    expect((await queue.getJob('job'))?.returnvalue).toBe('outcome');
  });

  it('jobs -> what is known of each, in the order asked for', async () => {
    const store = await ready();
    const queue = store.createQueue('read');
    expect(await store.readJobs(queue, [])).toEqual([]);
    const [started, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const worker = store.createWorker(
      'read',
      async (job, token) => {
        if (job.id === 'breaks') throw new Error('broke');
        if (job.id === 'ends') return 'outcome';
        if (job.id === 'returns') {
          await job.moveToDelayed(Date.now() + 60_000, token);
          throw new HandedBack();
        }
        started.resolve();
        return ending.promise;
      },
      { concurrency: 1 },
    );
    for (const jobId of ['breaks', 'ends', 'returns', 'runs', 'waits']) await queue.add('job', {}, { jobId });
    await queue.add('job', {}, { jobId: 'last', priority: 1 });
    await queue.add('job', {}, { jobId: 'sleeps', delay: 60_000 });
    await started.promise;
    const ids = ['none', 'last', 'waits', 'sleeps', 'runs', 'ends', 'breaks', 'runs', 'returns'];
    const found = await store.readJobs(queue, ids);
    expect(found).toEqual([
      { state: 'unknown' },
      { state: 'queued' },
      { state: 'queued' },
      { state: 'queued' },
      { state: 'running' },
      { state: 'completed', finishedOn: expect.any(Number), returnValue: 'outcome' },
      { state: 'failed', finishedOn: expect.any(Number) },
      { state: 'running' },
      { state: 'queued', wasTaken: true },
    ]);
    expect(await store.readJobs(store.createQueue('another'), ['runs'])).toEqual([{ state: 'unknown' }]);
    ending.resolve();
    await worker.close();
  });

  it('a queue -> what waits, what is active, and since when', async () => {
    const store = await ready();
    const queue = store.createQueue('measured');
    expect(await store.measure(queue)).toEqual({ waiting: 0, active: 0, oldestAddedAt: undefined });
    await queue.add('job', {}, { timestamp: 3000 });
    await queue.add('job', {}, { timestamp: 4000 });
    await queue.add('job', {}, { timestamp: 2000, priority: 1 });
    expect(await store.measure(queue)).toEqual({ waiting: 3, active: 0, oldestAddedAt: 2000 });
    const { worker, started, end } = hold(store, 'measured');
    await started;
    expect(await store.measure(queue)).toEqual({ waiting: 2, active: 1, oldestAddedAt: 2000 });
    expect(await store.measure(store.createQueue('another'))).toMatchObject({ waiting: 0, active: 0 });
    end();
    await vi.waitFor(
      async () => expect(await store.measure(queue)).toMatchObject({ waiting: 0, active: 0 }),
      patience,
    );
    await worker.close();
  });

  if (name === 'redis') {
    it('something else in the place of a job -> the other jobs are read', async () => {
      const store = await ready();
      const queue = store.createQueue('sick');
      const redis = new Redis(url.href);
      await queue.add('job', {}, { jobId: 'well' });
      await redis.set(queue.toKey('sick'), 'no job');
      await redis.hset(queue.toKey('odd'), { timestamp: 1, finishedOn: 2, returnvalue: 'no JSON' });
      expect(await store.readJobs(queue, ['sick', 'odd', 'well'])).toEqual([
        { state: 'unreadable' },
        { state: 'completed', finishedOn: 2, returnValue: undefined },
        { state: 'queued' },
      ]);
      redis.disconnect();
    });

    it('an ACL that forbids scripts -> a link does not connect, and does once they are allowed', async () => {
      const redis = new Redis(url.href);
      onTestFinished(() => redis.disconnect());
      await redis.acl('SETUSER', 'limited', 'on', '>secret', '~*', '&*', '+@all', '-eval', '-evalsha');
      const store = await ready(Object.assign(new URL(url), { username: 'limited', password: 'secret' }));
      const { log } = logged;
      const link = new FleetLink({ store, metrics: apiInstruments.metrics, ledger: noLedger, log });
      onTestFinished(() => link.close());
      const connected = link.start(new LiveChats());
      await vi.waitFor(() => expect(logged.text()).toContain('the queue store refused'), patience);
      expect(link.isConnected).toBe(false);
      await redis.acl('SETUSER', 'limited', '+@all');
      expect(await connected).toBe(true);
    });

    it("events that are forgotten -> no more of BullMQ's than the last jobs have written", async () => {
      const store = await ready();
      const redis = new Redis(url.href);
      onTestFinished(() => redis.disconnect());
      const queue = store.createQueue('silent');
      const events = () => redis.xlen(queue.toKey('events'));
      for (let n = 0; n < 50; n += 1) await queue.add('job', {});
      expect(await events()).toBeGreaterThan(50);
      await store.forgetEvents(queue);
      expect(await events()).toBe(0);
      for (let n = 0; n < 50; n += 1) await queue.add('job', {});
      expect(await events()).toBeLessThan(10);
    });

    it('a server that could evict jobs -> is not ready, and says what to set', async () => {
      const own = await startRedisProcess({ lines: ['maxmemory-policy allkeys-lru'] });
      onTestFinished(own.stop);
      const store = open(new URL(`redis://127.0.0.1:${own.port}`));
      const error = await failure(store.check());
      await own.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
      expect(error).toBeInstanceOf(Misconfiguration);
      expect(String(error)).toMatch(/noeviction.*allkeys-lru/);
      await store.check();
    });
  } else {
    it('a queue that is full -> has no job to take, so that its workers do not ask without a pause', async () => {
      const store = await ready();
      const queue = store.createQueue('full');
      await Promise.all([queue.add('job', {}), queue.add('job', {})]);
      const worker = store.createWorker('full', async () => '', { autorun: false });
      const backend = (worker as unknown as { backend: BackendCalls }).backend;
      const hasJob = async () => (await backend.run('has_waiting_job', ['full'])).rows;
      expect(await hasJob()).toEqual([{ present: true }]);
      await queue.setGlobalConcurrency(1);
      expect(await hasJob()).toEqual([{ present: true }]);
      await worker.getNextJob('token', { block: false });
      expect(await hasJob()).toEqual([{ present: false }]);
      await queue.setGlobalConcurrency(2);
      expect(await hasJob()).toEqual([{ present: true }]);
      await worker.close(true);
    });

    it('adds that take all the connections of queues -> checks, messages and locks go on', async () => {
      const store = await ready();
      const queue = store.createQueue('crowded');
      const { worker, started, end } = hold(store, 'crowded', { lockDuration: 30_000, lockRenewTime: 200 });
      const relay = await openRelay(store, { name: 'test', log: logged.log });
      await queue.add('job', {});
      await started;
      const client = await connectPostgres();
      // The time in which BullMQ removes a whole queue; adds and results wait for it.
      await client.query(
        `begin; select pg_advisory_xact_lock(hashtext('bullmq:finalization'), hashtext('crowded'))`,
      );
      const adds = Promise.allSettled(Array.from({ length: 50 }, () => queue.add('job', {})));

      await once(worker, 'locksRenewed');
      const heard = Promise.withResolvers<unknown>();
      await relay.subscribe('test', z.object({ said: z.string() }), heard.resolve);
      await relay.publish('test', { said: 'hello' });
      expect(await heard.promise).toEqual({ said: 'hello' });
      await store.check();

      await client.query('rollback');
      end();
      expect((await adds).map(({ status }) => status)).not.toContain('rejected');
      await relay.close();
      await worker.close();
    });

    it('jobs added at one moment -> one transaction, in their order; only one that is refused fails', async () => {
      const queue = (await ready()).createQueue('busy');
      const ids = Array.from({ length: 30 }, (_, n) => `job-${n}`);
      const added = await Promise.all(ids.map((jobId) => queue.add('job', { jobId }, { jobId })));
      expect(added.map(({ id }) => id)).toEqual(ids);
      const waiting = await queue.getWaiting();
      expect(waiting.map(({ id, data }) => [id, data.jobId])).toEqual(ids.map((id) => [id, id]));
      const client = await connectPostgres();
      const count = 'select count(distinct xmin::text)::integer as transactions from bullmq.job';
      expect((await client.query(count)).rows).toEqual([{ transactions: 1 }]);
      const texts = ['first', 'no text in PostgreSQL: \0', 'last'];
      const tried = await Promise.allSettled(texts.map((text) => queue.add('job', { text })));
      expect(tried.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    });

    it('no other job -> nothing more is asked, and a delayed one is still taken when it is due', async () => {
      const store = await ready();
      const client = await connectPostgres();
      await client.query('drop function bullmq.next_signal');
      const queue = store.createQueue('signals');
      const done: string[] = [];
      const worker = store.createWorker('signals', async () => undefined, {});
      worker.on('completed', ({ name }) => done.push(name));
      await queue.add('first', {});
      await vi.waitFor(() => expect(done).toEqual(['first']), patience);
      await queue.add('delayed', {}, { delay: 300 });
      await vi.waitFor(() => expect(done).toEqual(['first', 'delayed']), patience);
      await worker.close();
      expect(warnings()).toEqual([]);
    });

    it.each(['completed', 'failed'] as const)(
      'a job that has %s -> is left to the pruner, and BullMQ neither writes nor announces events',
      async (state) => {
        const store = await ready();
        const client = await connectPostgres();
        const announced: unknown[] = [];
        client.on('notification', (message) => announced.push(message));
        await client.query('listen bullmq_events');
        const queue = store.createQueue(`leaving-${state}`);
        const process = async () => {
          if (state === 'failed') throw new Error('broken');
        };
        const worker = store.createWorker(queue.name, process, {});
        const ended = once(worker, state);
        await queue.add('job', {}, { jobId: 'ended', removeOnComplete: true, removeOnFail: true });
        await ended;
        expect(await store.readJobs(queue, ['ended'])).toMatchObject([{ state }]);
        // Announced messages come before the answer.
        const { rows } = await client.query('select count(*)::integer as events from bullmq.event');
        expect([rows, announced]).toEqual([[{ events: 0 }], []]);
        await worker.close();
      },
    );

    it('a check for abandoned jobs in the future -> is forgotten when a worker opens', async () => {
      const store = await ready();
      const client = await connectPostgres();
      const write = `insert into bullmq.meta (queue, field, value) values ($1, 'stalled-check', $2)`;
      await client.query(write, ['ahead', String(Date.now() + 3_600_000)]);
      const worker = store.createWorker('ahead', async () => undefined, { stalledInterval: 50 });
      const read = `select value::bigint as value from bullmq.meta where queue = 'ahead' and field = 'stalled-check'`;
      await vi.waitFor(async () => {
        const at = Number((await client.query(read)).rows[0]?.value);
        expect(Math.abs(at - Date.now())).toBeLessThan(60_000);
      }, patience);
      await worker.close();
    });

    it('a record or entry -> waits for the disk; a job does not', async () => {
      const store = await ready();
      const client = await connectPostgres();
      await client.query(`
        create table public.commits (of text, synchronous text);
        create function note() returns trigger language plpgsql as $$ begin
          insert into public.commits values (tg_table_name, current_setting('synchronous_commit')); return new; end $$;
        create trigger note after insert on bullmq.job for each row execute function note();
        create trigger note after insert on bullmq.quillgate_outbox for each row execute function note();
        create trigger note after insert on bullmq.quillgate_records for each row execute function note()`);
      await store.outbox.append(['flushed']);
      await store.records.create('flushed', { value: '{}', ttlMs: 60_000 });
      await store.createQueue('unflushed').add('job', {});
      const { rows } = await client.query('select of, synchronous from public.commits');
      expect(rows).toEqual([
        { of: 'quillgate_outbox', synchronous: 'on' },
        { of: 'quillgate_records', synchronous: 'on' },
        { of: 'job', synchronous: 'off' },
      ]);
    });

    it('a database that is not migrated -> is not ready until it is, which any number may do at once', async () => {
      const { DATABASE_URL = '' } = await freshStore(server);
      const store = open(new URL(DATABASE_URL));
      expect(await failure(store.check())).toEqual(schemaMissing);
      await Promise.all(Array.from({ length: 5 }, () => migrateQueueStore(configOf({ DATABASE_URL }))));
      await store.check();
    });

    it('a schema that is incomplete, older than needed or too new -> is not ready', async () => {
      const store = await ready();
      const client = await connectPostgres();
      for (const table of ['records', 'outbox']) {
        await client.query(`drop table bullmq.quillgate_${table}`);
        expect(await failure(store.check())).toEqual(schemaMissing);
        await migrateQueueStore(configOf({ DATABASE_URL: url.href }));
        await store.check();
      }
      await client.query('create temporary table kept as table bullmq.migration');
      await client.query(
        'delete from bullmq.migration where version = (select max(version) from bullmq.migration)',
      );
      expect(String(await failure(store.check()))).toMatch(/older than this release: run quillgate migrate$/);
      await client.query('insert into bullmq.migration select * from kept on conflict do nothing');
      const add = 'insert into bullmq.migration (version, name, min_client_version) values';
      // A newer one that is good for this release too.
      await client.query(`${add} (999, 'newer', 6)`);
      await store.check();
      await client.query(`${add} (1000, 'x', 99)`);
      expect(String(await failure(store.check()))).toMatch(/newer release .* upgrade this program$/);
    });
  }
});

describe('openQueueStore', () => {
  it('no address -> throws', () => {
    expect(() => openQueueStore(configOf({}), createRecordingLog().log)).toThrow(TypeError);
  });
});
