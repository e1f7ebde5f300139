import express, { type Request, type RequestHandler, type Response } from 'express';
import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { livez, metricsPage, readyz } from '../../../api/operations/monitoring-routes.js';
import type { DatabaseHealth } from '../../../db/database/health.js';
import { parseConfig } from '../../../shared/config/config.js';
import { Misconfiguration, type QueueStore } from '../../../shared/queue/queue-store.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { release } from '../../../shared/runtime/program.js';
import { startApp } from '../../support/app.js';
import { createClient } from '../../support/client.js';
import { statusFor } from '../../support/host-header.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

// Nothing listens on port 1.
const config = parseConfig({ REDIS_URL: 'redis://:canary@127.0.0.1:1' }, 'config');
const unreachable = openQueueStore(config, createRecordingLog().log);
let store: QueueStore;
let databaseChecks: DatabaseHealth;
let isConnected: boolean;
let draining: boolean;

const app = express();
app.get('/livez', livez);
app.get('/readyz', (request, response, next) =>
  readyz({
    store,
    database: { check: async () => databaseChecks },
    link: { isConnected },
    draining: () => draining,
  })(request, response, next),
);
app.get('/metrics', (request, response, next) => page(request, response, next));
const server = await serve(app);
afterAll(async () => {
  await server.close();
  await unreachable.close();
});
beforeEach(() => {
  store = { ...unreachable, check: async () => {} };
  databaseChecks = { database: { status: 'ok' }, migrations: { status: 'ok' } };
  isConnected = true;
  draining = false;
});

const client = createClient(server.url);
const ask = async (path: string) => {
  const { status, body } = await client({ path });
  return { status, body };
};

describe('readyz', () => {
  it('store and database answer, and the channels are open -> 200', async () => {
    expect(await ask('/readyz')).toEqual({
      status: 200,
      body: { status: 'ok', release, checks: { ...databaseChecks, queue: { store: 'redis', status: 'ok' } } },
    });
  });

  const failing = { status: 'failing', detail: 'as it is' } as const;
  const misconfigured = () => Promise.reject(new Misconfiguration('set the policy'));
  it.each<[string, () => void, object]>([
    ['the database fails', () => (databaseChecks.database = failing), { database: failing }],
    ['migrations are missing', () => (databaseChecks.migrations = failing), { migrations: failing }],
    ['the link to the queue is not connected', () => (isConnected = false), { queue: { status: 'failing' } }],
    [
      'an operator has to correct the store',
      () => (store = { ...unreachable, check: misconfigured }),
      { queue: { status: 'failing', detail: 'set the policy' } },
    ],
  ])('%s -> 503, and which check it is', async (_, fail, checks) => {
    fail();
    expect(await ask('/readyz')).toMatchObject({ status: 503, body: { status: 'failing', checks } });
  });

  it('draining, although all is well -> 503', async () => {
    draining = true;
    const checks = { queue: { status: 'ok' } };
    expect(await ask('/readyz')).toMatchObject({ status: 503, body: { status: 'draining', checks } });
  });

  it('the store cannot be reached -> 503, without its address', async () => {
    store = unreachable;
    const answer = await ask('/readyz');
    expect(answer).toMatchObject({ status: 503, body: { checks: { queue: { status: 'failing' } } } });
    expect(JSON.stringify(answer)).not.toMatch(/canary|127\.0\.0\.1/);
  });
});

describe('livez', () => {
  it('whatever the store does -> 200', async () => {
    store = unreachable;
    draining = true;
    expect(await ask('/livez')).toEqual({ status: 200, body: { status: 'ok' } });
  });
});

let page: RequestHandler;
const read = async () => (await client({ path: '/metrics' })).text;

/** Requests in this very moment, which a request over the network does not. */
const scrapeNow = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const response = { set: () => response, send: resolve };
    void page({ socket: {}, headers: {} } as Request, response as unknown as Response, reject);
  });

describe('metricsPage', () => {
  let scrapes: number;
  let fails: boolean;
  let delays: number[];
  beforeEach(() => {
    // The clock stands still.
    vi.useFakeTimers({ toFake: ['performance'] });
    [scrapes, fails, delays] = [0, false, []];
    const scrape = async () => {
      if (fails) throw new Error('cannot be read');
      return { contentType: 'text/plain', text: `scrape ${++scrapes}` };
    };
    page = metricsPage({ scrape }, { delay: async (ms) => delays.push(ms) });
    return () => void vi.useRealTimers();
  });

  it('many who ask within a second -> share one text, which is made a second after the last', async () => {
    expect(await read()).toBe('scrape 1');
    expect(delays).toEqual([]);
    const texts = await Promise.all(Array.from({ length: 20 }, scrapeNow));
    expect(new Set(texts)).toEqual(new Set(['scrape 2']));
    expect(await read()).toBe('scrape 3');
    expect(delays).toEqual([1000, 1000]);
  });

  it('a web page whose name leads to this machine -> 421, and nothing is made', async () => {
    const at = `${server.url}/metrics`;
    expect(await statusFor(at, 'evil.example')).toBe(421);
    expect(await Promise.all(['localhost', '[::1]:3000'].map((host) => statusFor(at, host)))).toEqual([
      200, 200,
    ]);
    expect(await statusFor(`${server.url}/livez`, 'evil.example')).toBe(200);
  });

  it('a text that could not be made -> an error, and the next one is made', async () => {
    fails = true;
    expect((await fetch(`${server.url}/metrics`)).status).toBe(500);
    fails = false;
    expect(await read()).toBe('scrape 1');
  });
});

describe('GET /metrics at PORT', () => {
  const here = { HOST: '127.0.0.1' };
  const operator = { Authorization: 'Bearer operator' };
  it.each<[string, Record<string, string>, Record<string, string>, number]>([
    ['this machine alone is listened to', here, {}, 200],
    ['it came through a proxy on this machine', here, { 'X-Forwarded-For': '203.0.113.7' }, 401],
    ['it was forwarded in the standard way', here, { Forwarded: 'for=203.0.113.7' }, 401],
    ['a proxy gives the address it was asked from', here, { 'X-Real-IP': '203.0.113.7' }, 401],
    ['a proxy names itself', here, { Via: '1.1 proxy' }, 401],
    ['it was forwarded with an odd header', here, { 'x-forwarded-host': '' }, 401],
    ['everyone is listened to', { HOST: '0.0.0.0' }, {}, 401],
    ['everyone is listened to, over IPv6', { HOST: '::' }, {}, 401],
    ['an operator asks', {}, operator, 200],
    ['an operator asks through a proxy', here, { ...operator, 'X-Forwarded-For': '203.0.113.7' }, 200],
    ['a writer of the blog asks', {}, { Authorization: 'Bearer writer' }, 403],
    ['a wrong token is sent', {}, { Authorization: 'Bearer canary' }, 401],
    ['METRICS_PORT has them', { METRICS_PORT: '3003' }, operator, 404],
  ])('%s -> as promised', async (_, variables, headers, status) => {
    const app = await startApp({ variables });
    onTestFinished(app.close);
    const response = await app.ask({ path: '/metrics', headers });
    expect(response.status).toBe(status);
    if (status === 401) expect(response.headers.get('www-authenticate')).toBe('Bearer realm="admin"');
  });
});
