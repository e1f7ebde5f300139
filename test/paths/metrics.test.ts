import { randomUUID } from 'node:crypto';
import type { JobsOptions } from 'bullmq';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { encodeChatJob, queueName } from '../../shared/protocol/messages.js';
import { authorization, type ChatCall, type Deployment, startDeployment } from '../support/deployment.js';
import { readMetrics, type Scraped } from '../support/metrics.js';
import { openStoreOf } from '../support/opened-store.js';
import { patience } from '../support/patience.js';

let deployment: Deployment;

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
const jobs = (provider: string, code: string) =>
  `quillgate_jobs_total{provider="${provider}",code="${code}"}`;
const calls = (provider: string, kind: string, code: string) =>
  `quillgate_provider_calls_total{provider="${provider}",kind="${kind}",code="${code}"}`;
const inStore = (provider: string, state: string) =>
  `quillgate_queue_jobs{provider="${provider}",state="${state}"}`;
const cancels = (kind: string) => `quillgate_cancels_total{provider="openai",kind="${kind}"}`;

describe('the metrics of an API process and a worker', () => {
  beforeAll(async () => {
    deployment = await startDeployment({});
  });
  afterAll(() => deployment.stop());

  const called = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
  /** Aborts the request when its call has begun. */
  const leave = async (call: ChatCall & { model: string }) => {
    const going = new AbortController();
    const asked = deployment.chat({ ...call, signal: going.signal }).catch(() => undefined);
    await called(call.model);
    going.abort();
    await asked;
  };

  it('tell what became of every request', async () => {
    await deployment.chat({});
    await deployment.chat({});
    await deployment.chat({ headers: { Authorization: 'Basic eDp5' } });
    await deployment.chat({ provider: 'OpenAI' });
    await deployment.chat({ body: '{' });
    await deployment.chat({ model: 'sim-blocked' });
    await deployment.blog('/blogs');
    await deployment.blog('/blogs', { json: {} });
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
      [jobs('openai', 'ok')]: 2,
      [jobs('openai', 'content_blocked')]: 1,
      [calls('openai', 'first', 'ok')]: 2,
      'quillgate_queue_wait_seconds_count{provider="openai"}': 3,
      'quillgate_provider_call_duration_seconds_count{provider="openai"}': 3,
    });
  });

  it('tell what runs, and what was called off by whom', async () => {
    const before = await ofWorker();
    const hanging = deployment.chat({ model: 'sim-hang', headers: { Prefer: 'respond-async' } });
    const { body, status } = await hanging;
    expect(status).toBe(202);
    await called('sim-hang');
    await shows(ofWorker, { 'quillgate_pool_in_flight{provider="openai"}': 1 });
    await shows(ofApi, { [inStore('openai', 'active')]: 1, [chats('openai', 'accepted')]: 1 });
    await fetch(`${deployment.url}/chat/${String(body.id)}`, {
      method: 'DELETE',
      headers: { Authorization: authorization },
    });
    await leave({ model: 'sim-latency-15000' });
    await shows(ofApi, {
      [cancels('asked')]: 1,
      [cancels('caller_gone')]: 1,
      [chats('openai', 'client_closed')]: 1,
      [inStore('openai', 'active')]: 0,
    });
    await shows(ofWorker, {
      [jobs('openai', 'cancelled')]: (before.get(jobs('openai', 'cancelled')) ?? 0) + 2,
      [calls('openai', 'first', 'cancelled')]: 2,
      'quillgate_pool_in_flight{provider="openai"}': 0,
    });
  });
});

describe('the metrics of the queue', () => {
  afterEach(() => deployment.stop());

  it('are right when no worker lives, and the same from every API process', async () => {
    deployment = await startDeployment({ workers: 0 });
    const other = await deployment.startApi();
    // Not by asking: an API process that has heard of no worker for a while refuses.
    await addJobs([{}, {}, { priority: 1 }]);
    const waiting = {
      quillgate_queue_up: 1,
      [inStore('openai', 'waiting')]: 3,
      [inStore('openai', 'active')]: 0,
      [inStore('bedrock', 'waiting')]: 0,
    };
    for (const url of [deployment.url, other.url]) {
      await shows(() => scrape(url), waiting);
      const age = (await scrape(url)).get('quillgate_queue_oldest_waiting_seconds{provider="openai"}');
      expect(age).toBeGreaterThanOrEqual(30);
      expect(age).toBeLessThan(60);
    }
    expect((await ofApi()).get('quillgate_queue_oldest_waiting_seconds{provider="bedrock"}')).toBe(0);
    await deployment.startWorker();
    await shows(ofApi, { [inStore('openai', 'waiting')]: 0, [inStore('openai', 'active')]: 0 });
  });
});

/** Puts these jobs into the queue of OpenAI, as half a minute ago. */
async function addJobs(options: JobsOptions[]): Promise<void> {
  const store = await openStoreOf(deployment.stores);
  const queue = store.createQueue(queueName('openai'));
  const job = encodeChatJob({
    v: 1,
    provider: 'openai',
    turns: [{ role: 'user', content: 'Hello' }],
    deadline: Date.now() + 60_000,
    ...{ replyTo: 'nobody', user: 'me' },
  });
  for (const own of options)
    await queue.add('chat', job, { jobId: randomUUID(), timestamp: Date.now() - 30_000, ...own });
  await queue.close();
  await store.close();
}
