import { once } from 'node:events';
import { appRoutes } from '@bull-board/api/dist/routes.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hidden } from '../../../api/admin/queue-board/textless-queue.js';
import { parseConfig } from '../../../shared/config/config.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { queueName } from '../../../shared/protocol/messages.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../../../shared/queue/stores/open.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { asOperator } from '../../support/operator-client.js';
import { patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { findStores, freshStore } from '../../support/stores.js';

/** Part of everything that a job holds, says or fails with. */
const canary = 'canary-of-a-job-2718281828';
const removal = { removeOnComplete: false, removeOnFail: false };

type Queue = ReturnType<QueueStore['createQueue']>;

const addressesOf = (jobId: string, name: string) =>
  [appRoutes.entryPoint, ...appRoutes.api].flatMap(({ method, route }) =>
    [route].flat().map((path) => ({
      method: String(method).toUpperCase(),
      path: `/admin/queues${path}`
        .replace(':queueName', name)
        .replace(':jobId', jobId)
        .replace(':queueStatus', 'completed')
        .replace(':schedulerId', 'x'),
    })),
  );

describe.each(await findStores())('the queue board, with $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);
  const { log } = createRecordingLog();
  let app: ChatApp;
  let store: QueueStore;
  let queues: Map<ProviderId, Queue>;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const started = await choice.start();
    const variables = await freshStore(started.server);
    await migrateQueueStore(parseConfig(variables, 'config'));
    const opened = openQueueStore(parseConfig(variables, 'config'), log);
    await opened.whenReady(AbortSignal.timeout(60_000));
    store = opened;
    queues = new Map(providerIds.map((id) => [id, opened.createQueue(queueName(id))]));
    await Promise.all([...queues.values()].map((queue) => queue.waitUntilReady()));
    app = await startChatApp({ board: { queueOf }, readJobs: opened.readJobs });
    stop = async () => {
      await app.close();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await opened.close();
      await started.stop();
    };
    await runJobs();
  });
  afterAll(() => stop?.());

  const queueOf = (id: ProviderId): Queue => {
    const queue = queues.get(id);
    if (queue === undefined) throw new TypeError('no such queue');
    return queue;
  };

  /** One that was answered, one that failed, both of openai; three that wait, of bedrock, and 25 of vertexai. */
  async function runJobs(): Promise<void> {
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
    const failed = once(worker, 'failed', { signal: AbortSignal.timeout(patienceMs) });
    const completed = once(worker, 'completed', { signal: AbortSignal.timeout(patienceMs) });
    await queueOf('openai').add(canary, data, { jobId: 'completed-1', ...removal });
    void worker.run();
    await Promise.all([failed, completed]);
    await worker.close();
    for (const n of [1, 2, 3])
      await queueOf('bedrock').add(canary, data, { jobId: `waiting-${n}`, ...removal });
    const many = Array.from({ length: 25 }, (_, n) => ({
      name: canary,
      data: {},
      opts: { jobId: `many-${n}`, ...removal },
    }));
    await queueOf('vertexai').addBulk(many);
  }

  const ask = (path: string, method = 'GET') => asOperator(app, { method, path });
  const read = async (query: string) =>
    (await (await ask(`/admin/queues/api/queues?${query}`)).json()) as { queues: Shown[] };
  interface Shown {
    name: string;
    counts: Record<string, number>;
    jobs: { id: string; data: unknown; isFailed: boolean }[];
  }

  it('shows the queues, how many jobs they have, and which', async () => {
    const { queues: shown } = await read('activeQueue=chat-bedrock&status=waiting');
    expect(shown.map(({ name }) => name)).toEqual(providerIds.map(queueName));
    expect(shown[0]?.counts).toMatchObject({ completed: 1, failed: 1, waiting: 0 });
    expect(shown[2]?.counts).toMatchObject({ waiting: 3 });
    expect(shown[2]?.jobs.map(({ id }) => id).sort()).toEqual(['waiting-1', 'waiting-2', 'waiting-3']);
    const { queues: latest } = await read('activeQueue=chat-openai');
    const jobs = latest[0]?.jobs ?? [];
    expect(jobs.map(({ id, isFailed, data }) => [id, isFailed, data]).sort()).toEqual([
      ['completed-1', false, hidden],
      ['failed-1', true, hidden],
    ]);
  });

  it.each(['completed-1', 'failed-1'])('shows the state of %s', async (id) => {
    const response = await ask(`/admin/queues/api/queues/chat-openai/${id}`);
    expect(await response.json()).toMatchObject({ status: id.split('-')[0], job: { id, progress: 0 } });
  });

  it('shows no text of any job at any of its addresses', async () => {
    for (const id of ['completed-1', 'failed-1'])
      for (const { path } of addressesOf(id, 'chat-openai').filter(({ method }) => method === 'GET')) {
        const response = await ask(path);
        expect(response.status, path).toBeLessThan(500);
        expect((await response.text()) + JSON.stringify([...response.headers]), path).not.toContain(canary);
      }
    for (const status of ['active', 'waiting', 'prioritized', 'completed', 'failed', 'delayed', 'latest'])
      for (const queue of ['chat-openai', 'chat-bedrock'])
        expect(JSON.stringify(await read(`activeQueue=${queue}&status=${status}`))).not.toContain(canary);
    expect(app.logs()).not.toContain(canary);
  });

  it('changes nothing, whatever it is asked', async () => {
    for (const { method, path } of addressesOf('completed-1', 'chat-openai'))
      for (const changing of new Set([method.replace('GET', 'POST'), 'PUT', 'PATCH', 'DELETE'])) {
        const response = await ask(path, changing);
        expect([response.status, response.headers.get('allow')], path).toEqual([405, 'GET, HEAD']);
        await response.body?.cancel();
      }
    expect(await queueOf('openai').getJobCounts('completed', 'failed')).toEqual({ completed: 1, failed: 1 });
    expect(await queueOf('openai').isPaused()).toBe(false);
    for (const { path } of addressesOf('completed-1', 'chat-openai').filter(
      ({ method }) => method !== 'GET',
    )) {
      // Some have the form of a job's address, and are answered as such.
      const response = await ask(path);
      expect([200, 403, 404], path).toContain(response.status);
    }
  });

  it('reads ten jobs at a time, however many are asked for', async () => {
    const shown = async (query: string) =>
      (await read(`activeQueue=chat-vertexai${query}`)).queues[3]?.jobs ?? [];
    expect(await shown('&jobsPerPage=1000')).toHaveLength(10);
    expect(await shown('&status=waiting&jobsPerPage=100000&page=1')).toHaveLength(10);
    expect(await shown('&status=waiting&page=3')).toHaveLength(5);
  });

  it.each(['%2e%2e', 'a%3Alock', '__proto__', `${'x'.repeat(500)}`, '*'])('knows no job %s', async (id) => {
    expect((await ask(`/admin/queues/api/queues/chat-openai/${id}`)).status).toBe(404);
    expect((await ask(`/admin/queues/api/queues/${id}/completed-1`)).status).toBe(404);
  });

  it.each([
    'activeQueue=chat-openai&status=x',
    'page=0',
    'page=-1',
    'page=x',
    'activeQueue[]=a',
    'activeQueue=%25',
  ])('does not fail for %s', async (query) => {
    expect([200, 400]).toContain((await ask(`/admin/queues/api/queues?${query}`)).status);
  });
});

describe('the queue board', () => {
  let app: ChatApp;
  beforeAll(async () => {
    app = await startChatApp();
  });
  afterAll(() => app.close());

  it('has a page with nothing of another host, and nothing inline', async () => {
    const response = await asOperator(app, { path: '/admin/queues' });
    const page = await response.text();
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none';script-src 'self';/);
    expect(page).not.toMatch(/https?:\/\/|style=|<style|<script>/);
    const files = [...page.matchAll(/(?:src|href)="(static\/[^"]+)"/g)].map(([, file]) => file);
    expect(files.length).toBeGreaterThan(4);
    for (const file of files) {
      const sent = await asOperator(app, { path: `/admin/queues/${file}` });
      expect([sent.status, sent.headers.get('x-content-type-options')], file).toEqual([200, 'nosniff']);
      await sent.body?.cancel();
    }
  });

  it.each([
    '/admin/queues/static/../package.json',
    '/admin/queues/static/%2e%2e/index.ejs',
    '/admin/queues/index.ejs',
  ])('has nothing at %s', async (path) => {
    expect((await asOperator(app, { path })).status).toBe(404);
  });

  it.each([
    '/admin/queues',
    '/admin/queues/',
    '/admin/queues/api/queues',
    '/admin/queues/static/favicon.ico',
  ])('is for operators alone: %s', async (path) => {
    const anonymous = await fetch(`${app.url}${path}`);
    expect([anonymous.status, anonymous.headers.get('content-type')]).toEqual([
      401,
      expect.stringMatching(/^application\/problem\+json/),
    ]);
    expect((await asOperator(app, { path, token: 'reader' })).status).toBe(403);
  });

  it('sends a browser that is not signed in to where that is done', async () => {
    const Accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
    const response = await fetch(`${app.url}/admin/queues`, { headers: { Accept }, redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, '/admin']);
  });

  it('says that the queue cannot be reached', async () => {
    const response = await asOperator(app, { path: '/admin/queues/api/queues' });
    expect([response.status, await response.json()]).toMatchObject([500, { code: 'queue_unavailable' }]);
  });
});
