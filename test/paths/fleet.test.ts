import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Fleet } from '../../shared/fleet-contract.js';
import { createToken, type TestToken } from '../support/accounts.js';
import { quillgate } from '../support/command-line.js';
import { blogToken, chatToken, type Deployment, startDeployment } from '../support/deployment.js';
import { readEvents } from '../support/event-streams.js';
import { patience } from '../support/patience.js';

let deployment: Deployment;
let databaseOnly: Record<string, string>;
beforeAll(async () => {
  deployment = await startDeployment({ workers: 1 });
  databaseOnly = { DATABASE_URL: deployment.stores.DATABASE_URL ?? '', ADMIN_USERNAME: 'operator' };
});
afterAll(() => deployment?.stop());

const fleet = async ({ ask }: TestToken) => (await (await ask()).json()) as Fleet;

describe('the fleet', () => {
  it('is there for tokens with the scope admin alone', async () => {
    expect((await fetch(`${deployment.url}/admin/pools`)).status).toBe(401);
    for (const given of [blogToken, chatToken])
      for (const path of ['/admin/pools', '/admin/events']) {
        const headers = { Authorization: `Bearer ${given}` };
        expect((await fetch(deployment.url + path, { headers })).status).toBe(403);
      }
    const operator = await createToken(deployment);
    const served = {
      ...{ state: 'serving', kind: 'real', queue: { waiting: 0, active: 0 } },
      workers: [{ settingsVersion: 0, host: expect.any(String) }],
    };
    // All have been heard of a second after the start.
    await vi.waitFor(async () => {
      const { queue, providers } = await fleet(operator);
      expect(queue.status).toBe('ok');
      expect(providers).toMatchObject(Array(4).fill(served));
    }, patience);
  });

  it('says what broke a model, and what failed last', async () => {
    const operator = await createToken(deployment);
    for (let n = 0; n < 10; n += 1)
      await deployment.chat({ model: 'sim-status-503', headers: { 'X-LLM-Fallback': 'none' } });
    await vi.waitFor(async () => {
      const [worker] = (await fleet(operator)).providers[0]?.workers ?? [];
      expect(worker?.breakers).toMatchObject([{ model: 'sim-status-503', reason: 'provider_error' }]);
      expect(worker?.lastError).toMatchObject({ code: 'provider_error', since: expect.any(String) });
    }, patience);
  });

  it('is followed no longer once the token is revoked', async () => {
    const { id, ask } = await createToken(deployment);
    const events = readEvents(await ask('/admin/events'));
    expect((await events.next()).value?.event).toBe('snapshot');
    expect(await quillgate(['tokens', 'revoke', id], databaseOnly)).toMatchObject({ code: 0 });
    let last: unknown;
    for (let next = await events.next(); !next.done; next = await events.next()) last = next.value;
    expect(last).toMatchObject({ event: 'error', data: { code: 'unauthorized', status: 401 } });
    expect((await ask()).status).toBe(401);
  });

  it('is followed no longer than the API process serves, which does not wait for those who follow it', async () => {
    const operator = await createToken(deployment);
    const other = await deployment.startApi({ SHUTDOWN_GRACE_MS: '3600000' });
    const events = readEvents(await operator.ask('/admin/events', other.url));
    expect((await events.next()).value?.event).toBe('snapshot');
    const stopped = other.child.stop({ graceMs: 60_000 });
    let ended = await events.next();
    while (!ended.done) ended = await events.next();
    await stopped;
    expect(await other.child.exitCode).toBe(0);
  });
});

describe('the command line', () => {
  const stores = () => deployment.stores;

  it('sees whether every configured provider is served, and says what is missing', async () => {
    const served = await quillgate(['status'], stores());
    expect(served).toMatchObject({ code: 0, stderr: '' });
    expect(served.stdout).toMatch(/^database {2}ok$/m);
    expect(served.stdout).toMatch(/^queue {5}ok \((postgres|redis)\)$/m);
    expect(served.stdout).toMatch(/^anthropic +serving +real +1 +0\/20 +0 +-$/m);
    expect(served.stdout.match(/^openai .*provider_error \d+ s ago/m)).not.toBeNull();
    const { workers } = deployment;
    await Promise.all(workers.map((worker) => worker.stop({ graceMs: 10_000 })));
    const unserved = await quillgate(['status', '--providers', 'openai', '--json'], stores());
    expect(unserved).toMatchObject({ code: 1 });
    expect(JSON.parse(unserved.stdout)).toMatchObject({
      database: { status: 'ok' },
      queue: { status: 'ok' },
      providers: [{ provider: 'openai', state: 'absent', queue: { waiting: 0 } }, {}, {}, {}],
      unserved: ['openai'],
    });
  });

  it('watches the workers come, and ends when it is interrupted', async () => {
    const { PATH } = process.env;
    const watching = spawn(resolve('bin/quillgate'), ['pools', 'watch'], {
      env: { PATH, ...stores() },
      cwd: mkdtempSync(join(tmpdir(), 'quillgate-test-')),
    });
    const ended = once(watching, 'exit');
    let seen = '';
    watching.stdout.setEncoding('utf8').on('data', (text) => {
      seen += text;
    });
    const until = (pattern: RegExp) => vi.waitFor(() => expect(seen).toMatch(pattern), patience);
    await until(/^\S+Z bedrock absent, unknown, 0 of 0 in flight, 0 waiting$/m);
    await deployment.startWorker({ WORKER_PROVIDERS: 'bedrock' });
    await until(/^\S+Z bedrock serving, real, 0 of 20 in flight, 0 waiting$/m);
    await until(/^\S+Z bedrock \S+ serving, 0 of 20 in flight$/m);
    watching.kill('SIGINT');
    expect(await ended).toEqual([0, null]);
  });

  it('stops watching when nobody reads any more', async () => {
    const command = `${resolve('bin/quillgate')} pools watch | head -n 1`;
    let hasEnded = false;
    const watching = promisify(execFile)('sh', ['-c', command], {
      env: { PATH: process.env.PATH, ...stores() },
    }).finally(() => {
      hasEnded = true;
    });
    // A reader that has gone is found with the next line, and only changes have one.
    while (!hasEnded) {
      const worker = await deployment.startWorker({ WORKER_PROVIDERS: 'vertexai' });
      await worker.stop({ graceMs: 10_000 });
    }
    // Finding N11: the first line is what the store has answered.
    expect((await watching).stdout).toMatch(/Z queue ok/);
  });
});
