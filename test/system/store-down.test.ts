import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { authorization, password, startDeployment, username } from '../support/deployment.js';
import { openWire } from '../support/wire.js';

/** Nothing listens on the discard port of a loopback address. */
const nowhere =
  inject('store').kind === 'redis'
    ? { REDIS_URL: 'redis://127.0.0.1:9' }
    : { DATABASE_URL: 'postgres://u:p@127.0.0.1:9/x' };

const dir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
let api: ChildProgram;
beforeAll(async () => {
  api = await startChild({
    name: 'api',
    command: resolve('bin/quillgate'),
    args: ['api'],
    environment: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      PORT: '0',
      CHAT_USERNAME: username,
      CHAT_PASSWORD: password,
      ...nowhere,
    },
    cwd: dir,
    logFile: join(dir, 'api.log'),
  });
});
afterAll(async () => {
  await api.stop({ graceMs: 10_000 });
  rmSync(dir, { recursive: true });
});

const get = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${api.port}${path}`, init);

it('is alive but not ready while the store is down', async () => {
  expect((await get('/livez')).status).toBe(200);
  const ready = await get('/readyz');
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({ status: 'failing', checks: { queue: { status: 'failing' } } });
});

it('answers a chat with queue_unavailable within three seconds', async () => {
  const startedAt = performance.now();
  const reply = await get('/chat', {
    method: 'POST',
    headers: { Authorization: authorization, 'Content-Type': 'application/json', 'X-LLM': 'openai' },
    body: '{"messages":[{"content":"Hi"}]}',
  });
  expect(reply.status).toBe(500);
  expect(await reply.json()).toMatchObject({ code: 'queue_unavailable', retryable: true });
  expect(performance.now() - startedAt).toBeLessThan(3000);
});

it('stops in time although the store has fallen silent', async () => {
  const store = inject('store');
  const wire = await openWire(Number(new URL(store.url).port));
  const url = new URL(store.url);
  url.port = String(wire.port);
  const deployment = await startDeployment({ store: { ...store, url: url.href } });
  expect((await deployment.chat({})).status).toBe(200);
  wire.freeze();
  for (const program of [deployment.api, ...deployment.workers]) {
    const startedAt = performance.now();
    process.kill(program.pid, 'SIGTERM');
    expect(await program.exitCode).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(6000);
  }
  await deployment.stop();
  await wire.close();
});
