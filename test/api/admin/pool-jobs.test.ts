import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listJobs } from '../../../api/admin/pool-jobs.js';
import { parseConfig } from '../../../shared/config/config.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { PoolJobPage } from '../../../shared/contracts/fleet-contract.js';
import { encodeOrigin } from '../../../shared/protocol/entries.js';
import { queueName } from '../../../shared/protocol/messages.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../../../shared/queue/stores/open.js';
import { startApp, type TestApp } from '../../support/app.js';
import { patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { findStores, freshStore } from '../../support/stores.js';

/** Part of everything that a job holds, says or fails with. */
const canary = 'canary-of-a-job-2718281828';
const removal = { removeOnComplete: false, removeOnFail: false };

type Queue = ReturnType<QueueStore['createQueue']>;

describe.each(findStores())('GET /admin/pools/{provider}/jobs, with $kind', (server) => {
  let app: TestApp;
  let store: QueueStore;
  let queues: Map<ProviderId, Queue>;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const variables = await freshStore(server);
    await migrateQueueStore(parseConfig(variables, 'config'));
    const opened = openQueueStore(parseConfig(variables, 'config'), createRecordingLog().log);
    await opened.whenReady(AbortSignal.timeout(patienceMs));
    store = opened;
    queues = new Map(providerIds.map((id) => [id, opened.createQueue(queueName(id))]));
    await Promise.all([...queues.values()].map((queue) => queue.waitUntilReady()));
    app = await startApp({ queues: { queueOf, store: opened } });
    stop = async () => {
      await app.close();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await opened.close();
    };
    await addJobs();
  });
  afterAll(() => stop?.());

  const queueOf = (id: ProviderId): Queue => {
    const queue = queues.get(id);
    if (queue === undefined) throw new TypeError('no such queue');
    return queue;
  };

  const origin = { user: 'id-of-ann', api: 'chat', provider: 'openai', deadline: 2000 } as const;

  /** Of openai one job that was answered and one that failed; of bedrock seven that wait and one that sleeps. */
  async function addJobs(): Promise<void> {
    const data = { messages: [{ role: 'user', content: canary }], user: canary };
    const worker = store.createWorker(
      queueName('openai'),
      async (job) => {
        await job.updateProgress({ text: canary });
        await job.log(canary);
        if (job.data.fails) throw new Error(canary);
        return { text: canary };
      },
      { autorun: false },
    );
    await queueOf('openai').add(canary, { ...data, fails: true }, { jobId: 'failed-1', ...removal });
    const name = encodeOrigin({ ...origin, name: 'ann', model: 'gpt' });
    await queueOf('openai').add(name, data, { jobId: 'completed-1', timestamp: 1000, ...removal });
    const failed = once(worker, 'failed', { signal: AbortSignal.timeout(patienceMs) });
    const completed = once(worker, 'completed', { signal: AbortSignal.timeout(patienceMs) });
    void worker.run();
    await Promise.all([failed, completed]);
    await worker.close();
    for (const n of [1, 2, 3])
      await queueOf('bedrock').add(encodeOrigin(origin), data, { jobId: `plain-${n}`, ...removal });
    for (const n of [4, 3, 2, 1])
      await queueOf('bedrock').add(canary, data, { jobId: `later-${n}`, priority: n, ...removal });
    await queueOf('bedrock').add(canary, data, { jobId: 'asleep', delay: 3_600_000, ...removal });
  }

  const ask = (provider: string, query = '') =>
    app.operate<PoolJobPage>({ path: `/admin/pools/${provider}/jobs${query}` });
  const read = async (provider: ProviderId, query = ''): Promise<PoolJobPage> => {
    const response = await ask(provider, query);
    expect(response.status).toBe(200);
    return response.body;
  };

  it('has whose job it is, when it was added, taken and ended, and how often it was taken', async () => {
    const { data, next } = await read('openai', '?state=completed');
    expect(data).toEqual([
      {
        ...{ id: 'completed-1', state: 'completed', attempts: 1, addedAt: '1970-01-01T00:00:01.000Z' },
        ...{ startedAt: expect.stringMatching(/^20.+Z$/), endedAt: expect.stringMatching(/^20.+Z$/) },
        ...{ place: null, user: 'ann', model: 'gpt', api: 'chat', deadline: '1970-01-01T00:00:02.000Z' },
      },
    ]);
    expect(next).toBeNull();
    expect((await read('openai', '?state=failed')).data).toMatchObject([{ id: 'failed-1', state: 'failed' }]);
    expect((await read('bedrock', '?state=delayed')).data).toMatchObject([
      { id: 'asleep', state: 'delayed', attempts: 0, startedAt: null, endedAt: null },
    ]);
    const [waiting] = (await read('bedrock', '?state=waiting')).data;
    expect(waiting).toMatchObject({ user: 'id-of-ann', model: null, api: 'chat' });
  });

  it('has nothing about the request of a job whose name an older release gave', async () => {
    const unknown = { user: null, model: null, api: null, deadline: null };
    expect((await read('openai', '?state=failed')).data).toMatchObject([unknown]);
    expect(await read('openai')).toEqual({ data: [], next: null });
  });

  it('lists what waits page by page, in the order in which it will run, with the place of each', async () => {
    const listed: [number | null, string][] = [];
    let offset = '';
    for (const expected of ['3', '6', null]) {
      const { data, next } = await read('bedrock', `?state=waiting&limit=3${offset}`);
      listed.push(...data.map(({ place, id }): [number | null, string] => [place, id]));
      expect(next).toBe(expected);
      offset = `&offset=${next}`;
    }
    const inOrder = ['plain-1', 'plain-2', 'plain-3', 'later-1', 'later-2', 'later-3', 'later-4'];
    expect(listed).toEqual(inOrder.map((id, n) => [n + 1, id]));
    expect((await read('bedrock', '?state=waiting&offset=9999')).data).toEqual([]);
  });

  it('has no text of any job', async () => {
    for (const provider of ['openai', 'bedrock'])
      for (const state of ['active', 'waiting', 'delayed', 'failed', 'completed'])
        expect((await ask(provider, `?state=${state}`)).text).not.toContain(canary);
    expect(app.logs()).not.toContain(canary);
  });

  it('leaves out a job that was removed since its id was read', async () => {
    const times = await store.readTimes(queueOf('bedrock'), ['plain-2', 'gone', 'asleep']);
    expect(times.map(({ id }) => id)).toEqual(['plain-2', 'asleep']);
    expect(await store.readTimes(queueOf('bedrock'), [])).toEqual([]);
  });

  it('says that the queue is unavailable when its store fails', async () => {
    const away = { queueOf, store: { ...store, readTimes: () => Promise.reject(new Error('away')) } };
    await expect(listJobs(away, 'openai', {})).rejects.toMatchObject({ code: 'queue_unavailable' });
  });
});

const app = await startApp();
afterAll(app.close);

describe('GET /admin/pools/{provider}/jobs', () => {
  it.each([
    [404, 'nobody/jobs', 'not_found'],
    [400, 'openai/jobs?state=prioritized', 'invalid_request'],
    [400, 'openai/jobs?offset=10000', 'invalid_request'],
    [400, 'openai/jobs?limit=201', 'invalid_request'],
    [500, 'openai/jobs', 'queue_unavailable'],
  ])('is a problem with status %i for %s', async (status, path, code) => {
    const response = await app.operate({ path: `/admin/pools/${path}` });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(response.body.code).toBe(code);
  });
});
