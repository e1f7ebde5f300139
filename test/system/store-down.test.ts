import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.js';
import type { StoreServer } from '../support/stores.js';
import { openWireTo, type Wire } from '../support/wire.js';

/** The queue's store behind a wire: the only one where it is PostgreSQL, so that the database goes with it. */
const behind = ({ url }: { url: string }): StoreServer => {
  const store = inject('store');
  return { ...store, url, databaseUrl: store.kind === 'redis' ? store.databaseUrl : url };
};
/** PostgreSQL has to make every connection anew as a process of its own. */
const soonMs = inject('store').kind === 'redis' ? 2000 : 8000;
const blogStatus = inject('store').kind === 'redis' ? 200 : 503;

describe('when the store is down at the start', () => {
  let wire: Wire;
  let deployment: Deployment;
  beforeAll(async () => {
    const opened = await openWireTo(inject('store').url);
    wire = opened;
    deployment = await startDeployment({ store: behind(opened), withoutStore: wire.cut });
  });
  afterAll(async () => {
    await deployment.stop();
    await wire.close();
  });
  const get = (path: string) => fetch(`${deployment.url}${path}`);

  it('is alive but not ready', async () => {
    expect((await get('/livez')).status).toBe(200);
    const ready = await get('/readyz');
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ status: 'failing', checks: { queue: { status: 'failing' } } });
  });

  it('answers a chat with queue_unavailable within three seconds', async () => {
    const { status, body, headers, tookMs } = await deployment.chat({});
    expect(status).toBe(500);
    expect(body).toMatchObject({ code: 'queue_unavailable', retryable: true });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(tookMs).toBeLessThan(3000);
  });

  it(`answers the blog with ${blogStatus}`, async () => {
    const startedAt = performance.now();
    expect((await get('/blogs')).status).toBe(blogStatus);
    expect(performance.now() - startedAt).toBeLessThan(4000);
  });

  it('is well soon after the store has come', async () => {
    await wire.mend();
    const cameAt = performance.now();
    while ((await deployment.chat({})).status !== 200)
      expect(performance.now() - cameAt).toBeLessThan(soonMs);
    expect((await get('/readyz')).status).toBe(200);
    expect((await get('/blogs')).status).toBe(200);
    expect(performance.now() - cameAt).toBeLessThan(soonMs);
  });
});

it('stops in time although the store has fallen silent', async () => {
  const wire = await openWireTo(inject('store').url);
  const deployment = await startDeployment({ store: behind(wire) });
  expect((await deployment.chat({})).status).toBe(200);
  wire.freeze();
  const stopping = [deployment.api, ...deployment.workers].map(async ({ pid, exitCode }) => {
    const startedAt = performance.now();
    process.kill(pid, 'SIGTERM');
    expect(await exitCode).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(6000);
  });
  await Promise.all(stopping);
  await deployment.stop();
  await wire.close();
});
