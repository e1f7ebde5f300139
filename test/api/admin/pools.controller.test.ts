import { afterAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../../shared/contracts/fleet-contract.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { startApp } from '../../support/app.js';
import { heartbeatOf } from '../../support/heartbeats.js';

const heartbeats = new Heartbeats();
const app = await startApp({
  fleet: {
    ...{ heartbeats, isConnected: true },
    measure: async () => ({ waiting: 0, active: 0, oldestAddedAt: undefined }),
  },
});
afterAll(app.close);

describe('GET /admin/pools', () => {
  it('a worker whose breaker is open, and no store -> it has both', async () => {
    // Here, because a worker that says nothing for three seconds counts as silent.
    heartbeats.add(
      heartbeatOf({
        ...{ provider: 'bedrock', state: 'paused', concurrency: 2, inFlight: 1 },
        breakers: [{ model: null, state: 'open', nextProbeMs: 60_000, reason: 'credentials' }],
      }),
    );
    const response = await app.operate<Fleet>({ path: '/admin/pools' });
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const { queue, providers } = response.body;
    expect(queue).toMatchObject({ store: 'redis', status: 'failing' });
    expect(providers[2]).toMatchObject({
      ...{ provider: 'bedrock', state: 'paused', kind: 'real' },
      workers: [{ worker: 'one', breakers: [{ model: null, state: 'open', reason: 'credentials' }] }],
    });
  });
});
