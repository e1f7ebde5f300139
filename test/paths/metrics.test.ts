import { randomUUID } from 'node:crypto';
import type { JobsOptions } from 'bullmq';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../../dev/free-port.js';
import { encodeChatJob, queueName } from '../../shared/protocol/messages.js';
import { authorization, startDeployment } from '../support/deployment.js';
import { statusFor } from '../support/host-header.js';
import { readMetrics, type Scraped } from '../support/metrics.js';
import { openStoreOf } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

/** Numbers of all that happens are exact: nothing else uses this deployment. */
const deployment = await startDeployment({ variables: profiles.plain });
afterAll(deployment.stop);
const metricsPort = await freePort();
const apart = `http://127.0.0.1:${metricsPort}`;
/** Tells its metrics at a port of their own. */
const other = await deployment.startApi({ METRICS_PORT: String(metricsPort) });

async function scrape(url: string): Promise<Scraped> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return readMetrics(await response.text());
}
const ofApi = () => scrape(deployment.url);
const ofWorker = () => scrape(`http://127.0.0.1:${deployment.workers[0]?.port}`);

/** Waits until a scrape has these numbers: some are counted a moment after the answer. */
const shows = (look: () => Promise<Scraped>, expected: Record<string, number>) =>
  vi.waitFor(async () => {
    const found = await look();
    expect(Object.fromEntries(Object.keys(expected).map((key) => [key, found.get(key)]))).toEqual(expected);
  }, patience);

const chats = (provider: string, code: string) =>
  `quillgate_chat_requests_total{provider="${provider}",code="${code}"}`;
const jobs = (code: string) => `quillgate_jobs_total{provider="openai",code="${code}"}`;
const calls = (code: string) =>
  `quillgate_provider_calls_total{provider="openai",kind="first",code="${code}"}`;
const inStore = (provider: string, state: string) =>
  `quillgate_queue_jobs{provider="${provider}",state="${state}"}`;
const oldest = (provider: string) => `quillgate_queue_oldest_waiting_seconds{provider="${provider}"}`;
const cancels = (kind: string) => `quillgate_cancels_total{provider="openai",kind="${kind}"}`;
const inPool = 'quillgate_pool_in_flight{provider="openai"}';
const called = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);

it('a web page whose name leads to this machine -> 421 from every program', async () => {
  const worker = `http://127.0.0.1:${deployment.workers[0]?.port}`;
  const pages = [deployment.url, apart, worker].map((url) => `${url}/metrics`);
  for (const page of [...pages, `${deployment.simulator.url}/__simulator/calls`]) {
    expect([page, await statusFor(page, 'evil.example')]).toEqual([page, 421]);
    expect([page, await statusFor(page, 'localhost')]).toEqual([page, 200]);
  }
});

describe('the metrics of an API process and a worker', () => {
  it.each([
    ['API process', ofApi],
    ['worker', ofWorker],
  ])('any time → they tell the processor, memory and event loop of the %s', async (_, look) => {
    const found = await look();
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_heap_size_used_bytes',
    ])
      expect(found.get(name)).toBeGreaterThan(0);
    expect([...found.keys()]).toContain('nodejs_eventloop_lag_p99_seconds');
  });

  it('requests have ended → they tell what became of each', async () => {
    const { chat, blog } = deployment;
    await chat({});
    await chat({});
    await chat({ headers: { Authorization: 'Basic eDp5' } });
    await chat({ provider: 'OpenAI' });
    await chat({ body: '{' });
    await chat({ model: 'sim-blocked' });
    await blog('/blogs');
    await blog('/blogs', { json: {} });
    await shows(ofApi, {
      [chats('openai', 'ok')]: 2,
      [chats('openai', 'unauthorized')]: 1,
      [chats('none', 'unknown_provider')]: 1,
      [chats('openai', 'invalid_json')]: 1,
      [chats('openai', 'content_blocked')]: 1,
      'quillgate_chat_requests_in_flight{provider="openai"}': 0,
      'quillgate_blog_requests_total{code="ok"}': 1,
      'quillgate_blog_requests_total{code="invalid_request"}': 1,
    });
    await shows(ofWorker, {
      [jobs('ok')]: 2,
      [jobs('content_blocked')]: 1,
      [calls('ok')]: 2,
      'quillgate_queue_wait_seconds_count{provider="openai"}': 3,
      'quillgate_provider_call_duration_seconds_count{provider="openai"}': 3,
    });
  });

  it('chats run and are called off → they tell how many, and by whom', async () => {
    const { status, body } = await deployment.chat({
      model: 'sim-hang',
      headers: { Prefer: 'respond-async' },
    });
    expect(status).toBe(202);
    await called('sim-hang');
    await shows(ofWorker, { [inPool]: 1 });
    await shows(ofApi, { [inStore('openai', 'active')]: 1, [chats('openai', 'accepted')]: 1 });
    const address = `${deployment.url}/chat/${String(body.id)}`;
    await fetch(address, { method: 'DELETE', headers: { Authorization: authorization } });
    for (const model of ['sim-hang@left', 'sim-hang@left-too']) {
      const going = new AbortController();
      const left = deployment.chat({ model, signal: going.signal }).catch(() => undefined);
      await called(model);
      going.abort();
      await left;
    }
    await shows(ofApi, {
      [cancels('asked')]: 1,
      [cancels('caller_gone')]: 2,
      [chats('openai', 'client_closed')]: 2,
      [inStore('openai', 'active')]: 0,
    });
    await shows(ofWorker, { [jobs('cancelled')]: 3, [calls('cancelled')]: 3, [inPool]: 0 });
  });
});

describe('the metrics of the queue', () => {
  it('jobs wait and no worker lives → they are right, and the same from every API process', async () => {
    const [worker] = deployment.workers;
    await worker?.stop({ graceMs: 60_000 });
    // Not by asking: an API process that has heard of no worker for a while refuses.
    await addJobs([{}, {}, { priority: 1 }]);
    const waiting = {
      quillgate_queue_up: 1,
      [inStore('openai', 'waiting')]: 3,
      [inStore('openai', 'active')]: 0,
      [inStore('bedrock', 'waiting')]: 0,
      [oldest('bedrock')]: 0,
    };
    for (const url of [deployment.url, apart]) {
      await shows(() => scrape(url), waiting);
      expect((await scrape(url)).get(oldest('openai'))).toBeGreaterThanOrEqual(ageMs / 1000);
    }
    await deployment.startWorker();
    await shows(ofApi, { [inStore('openai', 'waiting')]: 0, [inStore('openai', 'active')]: 0 });
  });
});

describe('METRICS_PORT', () => {
  it('is set → the metrics are there alone, and nothing of the API is', async () => {
    const statusesOf = (url: string, paths: string[]) =>
      Promise.all(paths.map(async (path) => (await fetch(url + path)).status));
    const metrics = ['/metrics', '/METRICS', '/metrics/'];
    expect(await statusesOf(other.url, metrics)).toEqual([404, 404, 404]);
    expect(await statusesOf(apart, metrics)).toEqual([200, 404, 404]);
    expect((await scrape(apart)).size).toBeGreaterThan(0);
    const refused = await fetch(`${apart}/metrics`, { method: 'POST' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    for (const path of ['/chat', '/v1/chat', '/blogs', '/docs', '/openapi.json', '/feed.xml'])
      expect(await (await fetch(apart + path)).json()).toMatchObject({ status: 404, code: 'not_found' });
    // For load balancers, and for those who watch.
    for (const url of [other.url, apart])
      expect(await statusesOf(url, ['/livez', '/readyz'])).toEqual([200, 200]);
  });
});

const ageMs = 30_000;

/** Puts these jobs into the queue of OpenAI, as half a minute ago. */
async function addJobs(options: JobsOptions[]): Promise<void> {
  const store = await openStoreOf(deployment.stores);
  const queue = store.createQueue(queueName('openai'));
  const job = encodeChatJob({
    v: 1,
    provider: 'openai',
    turns: [{ role: 'user', content: 'Hello' }],
    deadline: Date.now() + 120_000,
    ...{ replyTo: 'nobody', user: 'me' },
  });
  for (const own of options)
    await queue.add('chat', job, { jobId: randomUUID(), timestamp: Date.now() - ageMs, ...own });
  await queue.close();
  await store.close();
}
