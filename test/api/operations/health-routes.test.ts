import express from 'express';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { livez, readyz } from '../../../api/operations/health-routes.js';
import type { DatabaseHealth } from '../../../db/database/health.js';
import { parseConfig } from '../../../shared/config/config.js';
import { Misconfiguration, type QueueStore } from '../../../shared/queue/queue-store.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { release } from '../../../shared/runtime/release.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

// Nothing listens on port 1.
const config = parseConfig({ REDIS_URL: 'redis://:canary@127.0.0.1:1' }, 'config');
const unreachable = openQueueStore(config, createRecordingLog().log);
let store: QueueStore;
let databaseChecks: DatabaseHealth;
let connected: boolean;
let draining: boolean;

const app = express();
app.get('/livez', livez);
app.get('/readyz', (request, response, next) =>
  readyz({
    store,
    database: { check: async () => databaseChecks },
    connected: () => connected,
    draining: () => draining,
  })(request, response, next),
);
const server = await serve(app);
afterAll(async () => {
  await server.close();
  await unreachable.close();
});
beforeEach(() => {
  store = { ...unreachable, check: async () => {} };
  databaseChecks = { database: { status: 'ok' }, migrations: { status: 'ok' } };
  connected = true;
  draining = false;
});

const ask = async (path: string) => {
  const response = await fetch(server.url + path);
  return { status: response.status, body: await response.json() };
};

describe('readyz', () => {
  it('is 200 when the store answers and the channels are open', async () => {
    expect(await ask('/readyz')).toEqual({
      status: 200,
      body: { status: 'ok', release, checks: { ...databaseChecks, queue: { store: 'redis', status: 'ok' } } },
    });
  });

  it.each(['database', 'migrations'] as const)('is 503 when the check of the %s fails', async (name) => {
    databaseChecks[name] = { status: 'failing', detail: 'as it is' };
    expect(await ask('/readyz')).toMatchObject({
      status: 503,
      body: { status: 'failing', checks: { [name]: { status: 'failing', detail: 'as it is' } } },
    });
  });

  it('is 503 before the job client is connected', async () => {
    connected = false;
    expect(await ask('/readyz')).toMatchObject({
      status: 503,
      body: { status: 'failing', checks: { queue: { status: 'failing' } } },
    });
  });

  it('is 503 when the store cannot be reached, without its address', async () => {
    store = unreachable;
    const answer = await ask('/readyz');
    expect(answer).toMatchObject({ status: 503, body: { checks: { queue: { status: 'failing' } } } });
    expect(JSON.stringify(answer)).not.toMatch(/canary|127\.0\.0\.1/);
  });

  it('names a misconfiguration that an operator has to correct', async () => {
    const check = () => Promise.reject(new Misconfiguration('set the policy'));
    store = { ...unreachable, check };
    expect(await ask('/readyz')).toMatchObject({
      status: 503,
      body: { checks: { queue: { status: 'failing', detail: 'set the policy' } } },
    });
  });

  it('is 503 while draining, although all is well', async () => {
    draining = true;
    expect(await ask('/readyz')).toMatchObject({
      status: 503,
      body: { status: 'draining', checks: { queue: { status: 'ok' } } },
    });
  });
});

describe('livez', () => {
  it('is 200 whatever the store does', async () => {
    store = unreachable;
    draining = true;
    expect(await ask('/livez')).toEqual({ status: 200, body: { status: 'ok' } });
  });
});
