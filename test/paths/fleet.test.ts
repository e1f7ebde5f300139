import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Fleet, PoolJobPage } from '../../shared/contracts/fleet-contract.js';
import type { Samples } from '../../shared/contracts/history.js';
import type { RequestDetails, RequestPage } from '../../shared/contracts/ledger.js';
import { createToken, type TestToken } from '../support/accounts.js';
import { promptCanary } from '../support/canaries.js';
import { quillgate } from '../support/command-line.js';
import {
  blogToken,
  chatToken,
  type Deployment,
  type StartedApi,
  startDeployment,
  username,
} from '../support/deployment.js';
import { readEvents } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

let deployment: Deployment;
/** An API process that has done none of the chats. */
let other: StartedApi;
let operator: TestToken;
beforeAll(async () => {
  deployment = await startDeployment({ variables: profiles.plain });
  other = await deployment.startApi({ SHUTDOWN_GRACE_MS: '3600000' });
  operator = await createToken(deployment);
  // A process that is busy with its start may not read of a token in time, and says 503.
  await vi.waitFor(
    async () => expect((await operator.ask('/admin/pools', other.url)).status).toBe(200),
    patience,
  );
});
afterAll(() => deployment?.stop());

const there = async <T>(path: string): Promise<T> =>
  (await (await operator.ask(path, other.url)).json()) as T;
const fleet = async () => (await (await operator.ask()).json()) as Fleet;

describe('the chats of one API process', () => {
  it('are looked at from another → requests, calls, measurements and jobs, without a text', async () => {
    const call = { messages: [{ content: promptCanary }], headers: { 'X-LLM-Fallback': 'none' } };
    const answers = [
      await deployment.chat({ ...call, model: 'sim-echo' }),
      await deployment.chat({ ...call, model: 'sim-status-400' }),
    ];
    const seen: unknown[] = [];
    await vi.waitFor(async () => {
      const { data } = await there<RequestPage>('/admin/requests?provider=openai');
      const error = { status: 400, type: expect.any(String) };
      const [refused, ok] = data;
      expect([refused?.result, ok?.result, refused?.error]).toEqual(['provider_rejected', 'ok', error]);
      expect(ok).toMatchObject({
        ...{ user: username, provider: 'openai', streamed: false, api: 'chat', calls: 1, lost: 0 },
        ...{ waitedMs: expect.any(Number), calledMs: expect.any(Number), totalMs: expect.any(Number) },
      });
      const details = await there<RequestDetails>(`/admin/requests/${refused?.id}`);
      expect(details).toMatchObject({ state: 'ended', request: refused, calls: [{ call: 1, status: 400 }] });
      seen.push(data, details);
    }, patience);
    await vi.waitFor(async () => {
      const { samples } = await there<Samples>('/admin/samples?provider=openai');
      expect(samples.reduce((sum, { ended }) => sum + (ended ?? 0), 0)).toBe(2);
      expect(samples.at(-1)).toMatchObject({ waiting: 0, concurrency: expect.any(Number) });
      seen.push(samples);
    }, patience);
    const jobs = await there<PoolJobPage>('/admin/pools/openai/jobs?state=completed');
    const ids = answers.map(({ headers }) => [headers.get('x-request-id'), 1]);
    expect(jobs.data.map(({ id, attempts }) => [id, attempts]).reverse()).toEqual(ids);
    expect(JSON.stringify([...seen, jobs])).not.toContain('canary');
  });
});

describe('the state of the fleet', () => {
  it('is asked for → tokens with the scope admin alone get it', async () => {
    expect((await fetch(`${deployment.url}/admin/pools`)).status).toBe(401);
    for (const given of [blogToken, chatToken])
      for (const path of ['/admin/pools', '/admin/events']) {
        const headers = { Authorization: `Bearer ${given}` };
        expect((await fetch(deployment.url + path, { headers })).status).toBe(403);
      }
    const served = {
      ...{ state: 'serving', kind: 'real', queue: { waiting: 0, active: 0 } },
      workers: [{ settingsVersion: 0, host: expect.any(String) }],
    };
    const all = { queue: { status: 'ok' }, providers: Array(4).fill(served) };
    await vi.waitFor(async () => expect(await fleet()).toMatchObject(all), patience);
  });

  it('has a model that fails → serving after one chat, failing and named after ten, at every process', async () => {
    const model = 'sim-status-503';
    const ask = () => deployment.chat({ model, headers: { 'X-LLM-Fallback': 'none' } });
    const seen = async () => [await fleet(), await there<Fleet>('/admin/pools')].map((at) => at.providers[0]);
    await ask();
    await vi.waitFor(async () => {
      for (const openai of await seen()) {
        expect(openai).toMatchObject({ state: 'serving', chats: { failed: 1, model } });
        expect(openai).not.toHaveProperty('failing');
      }
    }, patience);
    expect((await quillgate(['status'], deployment.stores)).stdout).toMatch(/^openai +serving /m);
    // Its breaker refuses the last ones: no worker sees them.
    for (let n = 0; n < 9; n += 1) await ask();
    await vi.waitFor(async () => {
      for (const openai of await seen())
        expect(openai).toMatchObject({
          failing: { code: 'provider_unavailable' },
          chats: { failed: 10, model },
        });
    }, patience);
  });

  it('has a model that broke → what broke it, and what failed last', async () => {
    const model = 'sim-status-503';
    const broken = {
      breakers: [{ model, reason: 'provider_error' }],
      lastError: { code: 'provider_error', since: expect.any(String) },
    };
    await vi.waitFor(async () => {
      expect((await fleet()).providers[0]?.workers[0]).toMatchObject(broken);
    }, patience);
  });

  it('has a model without credit → it is refused, and all models to that user, and the board says why until operators close it', async () => {
    const ask = (model: string) =>
      deployment.chat({ provider: 'anthropic', model, headers: { 'X-LLM-Fallback': 'none' } });
    const spent = [
      { model: 'sim-quota-1', state: 'open', reason: 'credit' },
      { model: null, user: expect.any(String), state: 'open', reason: 'credit' },
      { model: 'sim-quota-1', user: expect.any(String), state: 'open', reason: 'credit' },
    ];
    const seen = async () => (await fleet()).providers[1]?.workers[0]?.breakers;
    expect((await ask('sim-quota-1')).body).toMatchObject({ code: 'provider_error', retryable: false });
    await vi.waitFor(async () => expect(await seen()).toMatchObject(spent), patience);
    expect((await ask('sim-echo')).body).toMatchObject({ code: 'provider_unavailable' });
    expect(
      await quillgate(['pools', 'set', 'anthropic', '--breaker', 'closed'], deployment.stores),
    ).toMatchObject({
      code: 0,
    });
    await vi.waitFor(async () => expect(await seen()).toEqual([]), patience);
    await quillgate(['pools', 'reset', 'anthropic'], deployment.stores);
    expect((await ask('sim-echo')).status).toBe(200);
  });

  it('is followed with a token that is revoked → the stream ends with an error', async () => {
    const { id, ask } = await createToken(deployment);
    const events = readEvents(await ask('/admin/events'));
    expect((await events.next()).value?.event).toBe('snapshot');
    const environment = { DATABASE_URL: deployment.stores.DATABASE_URL ?? '', ADMIN_USERNAME: 'operator' };
    expect(await quillgate(['tokens', 'revoke', id], environment)).toMatchObject({ code: 0 });
    let last: unknown;
    for await (const event of events) last = event;
    expect(last).toMatchObject({ event: 'error', data: { code: 'unauthorized', status: 401 } });
    expect((await ask()).status).toBe(401);
  });

  it('is followed at an API process that stops → the stream ends, and the process does not wait for it', async () => {
    const events = readEvents(await operator.ask('/admin/events', other.url));
    expect((await events.next()).value?.event).toBe('snapshot');
    const stopped = other.child.stop({ graceMs: 60_000 });
    for await (const _ of events);
    await stopped;
    expect(await other.child.exitCode).toBe(0);
  });
});

describe('the command line', () => {
  const environment = () => ({ PATH: process.env.PATH, ...deployment.stores });

  it('watches and nobody reads any more → it ends with the next change', async () => {
    const command = `${resolve('bin/quillgate')} pools watch | head -n 1`;
    let hasEnded = false;
    const watching = promisify(execFile)('sh', ['-c', command], { env: environment() }).finally(() => {
      hasEnded = true;
    });
    const inFlight = (count: number) =>
      vi.waitFor(
        async () => expect((await fleet()).providers[1]?.workers).toMatchObject([{ inFlight: count }]),
        patience,
      );
    // A reader that has gone is found with the next line, and only changes have one.
    for (let n = 0; !hasEnded; n += 1) {
      const model = `sim-gate-0@watched-${n}`;
      const asked = deployment.chat({ provider: 'anthropic', model });
      await inFlight(1);
      deployment.simulator.open(model);
      await asked;
      await inFlight(0);
    }
    // The first line is what the store has answered.
    expect((await watching).stdout).toMatch(/Z queue ok/);
  });

  it('asks for the status, before and after the worker stops → what is served, and what is missing', async () => {
    // Those of the test above may have ended more than five minutes ago.
    const failing = { model: 'sim-status-503', headers: { 'X-LLM-Fallback': 'none' } };
    await Promise.all(Array.from({ length: 10 }, () => deployment.chat(failing)));
    // An API process says in its next heartbeat how its chats have ended.
    await vi.waitFor(async () => {
      const served = await quillgate(['status'], deployment.stores);
      expect(served).toMatchObject({ code: 0, stderr: '' });
      expect(served.stdout).toMatch(/^database {2}ok$/m);
      expect(served.stdout).toMatch(/^queue {5}ok \((postgres|redis)\)$/m);
      expect(served.stdout).toMatch(/^bedrock +serving +real +1 +0\/500 +0 +- +-$/m);
      expect(served.stdout).toMatch(/^openai +failing \(provider_(error|unavailable) of sim-status-503\) /m);
      expect(served.stdout).toMatch(/^openai .*provider_error \d+ (s|min) ago/m);
    }, patience);
    await Promise.all(deployment.workers.map((worker) => worker.stop({ graceMs: 60_000 })));
    const unserved = await quillgate(['status', '--providers', 'openai', '--json'], deployment.stores);
    expect(unserved).toMatchObject({ code: 1 });
    expect(JSON.parse(unserved.stdout)).toMatchObject({
      database: { status: 'ok' },
      queue: { status: 'ok' },
      providers: [{ provider: 'openai', state: 'absent', queue: { waiting: 0 } }, {}, {}, {}],
      unserved: ['openai'],
    });
  });

  it('watches a worker come → says so, and ends when it is interrupted', async () => {
    const watching = spawn(resolve('bin/quillgate'), ['pools', 'watch'], {
      env: environment(),
      cwd: tmpdir(),
    });
    const ended = once(watching, 'exit');
    let seen = '';
    watching.stdout.setEncoding('utf8').on('data', (text) => {
      seen += text;
    });
    const until = (pattern: RegExp) => vi.waitFor(() => expect(seen).toMatch(pattern), patience);
    await until(/^\S+Z bedrock absent, unknown, 0 of 0 in flight, 0 waiting$/m);
    await deployment.startWorker({ WORKER_PROVIDERS: 'bedrock' });
    await until(/^\S+Z bedrock serving, real, 0 of 500 in flight, 0 waiting$/m);
    await until(/^\S+Z bedrock \S+ serving, 0 of 500 in flight$/m);
    watching.kill('SIGINT');
    expect(await ended).toEqual([0, null]);
  });
});
