import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import type { Fleet } from '../../../shared/fleet-contract.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { heartbeatOf } from '../../support/heartbeats.js';

let app: ChatApp;
const heartbeats = new Heartbeats();
beforeAll(async () => {
  app = await startChatApp({
    fleet: { heartbeats, measure: async () => ({ waiting: 0, active: 0, oldestAddedAt: undefined }) },
    variables: { CORS_ORIGINS: '*' },
  });
});
afterAll(() => app.close());

const ask = (init: RequestInit = {}, path = '/admin/pools') =>
  fetch(`${app.url}${path}`, { headers: { Authorization: 'Bearer operator' }, ...init });

describe('GET /admin/pools', () => {
  it('has workers and their breakers, and that the store is down', async () => {
    // Here, because a worker that says nothing for three seconds counts as silent.
    heartbeats.add(
      heartbeatOf({
        ...{ provider: 'bedrock', state: 'paused', concurrency: 2, inFlight: 1 },
        breakers: [{ model: null, state: 'open', nextProbeMs: 60_000, reason: 'credentials' }],
      }),
    );
    const response = await ask();
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const { queue, providers } = (await response.json()) as Fleet;
    expect(queue).toMatchObject({ store: 'redis', status: 'failing' });
    expect(providers[2]).toMatchObject({
      ...{ provider: 'bedrock', state: 'paused', kind: 'real' },
      workers: [{ worker: 'one', breakers: [{ model: null, state: 'open', reason: 'credentials' }] }],
    });
  });

  it('takes no other method, and there is nothing beside it', async () => {
    const response = await ask({ method: 'POST' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    for (const path of ['/admin/', '/admin/pools/', '/Admin/pools', '/v1/admin/pools'])
      expect((await ask({}, path)).status, path).toBe(404);
  });

  it('is not opened to the pages of other origins', async () => {
    const Origin = 'https://app.example.org';
    for (const method of ['OPTIONS', 'GET']) {
      const headers = { Origin, Authorization: 'Bearer operator', 'Access-Control-Request-Method': 'GET' };
      const response = await ask({ method, headers });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});
