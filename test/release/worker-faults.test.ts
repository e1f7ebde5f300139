import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { patience } from '../support/patience.js';
import { openWireTo } from '../support/wire.js';

const lockMs = 3000;

let deployment: Deployment;
afterEach(() => deployment.stop());

const start = async (variables: Record<string, string>) => {
  deployment = await startDeployment({
    variables: {
      WORKER_LOCK_MS: String(lockMs),
      WORKER_STALLED_CHECK_MS: '1000',
      CHAT_TIMEOUT_MS: '30000',
      ...variables,
    },
  });
};

const codeOf = ({ status, body }: ChatReply) => ({ status, code: body.code });
const answered = { status: 200, code: undefined };
const callAfter = (since: number) => deployment.simulator.waitForCall(({ id }) => id > since);
const pidOf = (worker: { pid: number } | undefined): number => worker?.pid ?? Number.NaN;
const errors = () =>
  deployment
    .logs()
    .split('\n')
    .filter((line) => /"level":[56]0/.test(line));

describe('a frozen worker', () => {
  it('ends its call when it comes back after another worker has taken the job, and tells nobody', async () => {
    await start({});
    const frozen = pidOf(deployment.workers[0]);
    const asked = deployment.chat({ model: 'sim-latency-15000' });
    const first = await callAfter(0);
    process.kill(frozen, 'SIGSTOP');
    await deployment.startWorker();
    const second = await callAfter(first.id);
    process.kill(frozen, 'SIGCONT');
    const thawedAt = Date.now();
    const { lagMs } = await withLag(() => first.closed);
    expect(first.clientClosedFirst).toBe(true);
    expect((first.closedAt ?? Number.NaN) - thawedAt).toBeLessThan(lockMs / 2 + 2000 + lagMs);
    expect(second.closedAt).toBeUndefined();
    expect(codeOf(await asked)).toEqual(answered);
    expect(second.clientClosedFirst).toBe(false);
    expect(deployment.simulator.calls.list()).toHaveLength(2);
    expect(errors()).toEqual([]);
    // It works on as if nothing had happened.
    expect((await deployment.chat({})).status).toBe(200);
  });
});

describe('an idle worker that is frozen', () => {
  it('keeps the next job from the others for no more than a second or two', async () => {
    await start({});
    await deployment.startWorker();
    process.kill(pidOf(deployment.workers[0]), 'SIGSTOP');
    // One of them is the one that the frozen worker is woken for.
    for (let n = 0; n < 3; n += 1) {
      const { result: reply, lagMs } = await withLag(() => deployment.chat({}));
      expect(reply.status).toBe(200);
      // Less than it takes until a job is called abandoned.
      expect(reply.tookMs).toBeLessThan(lockMs + lagMs);
    }
    process.kill(pidOf(deployment.workers[0]), 'SIGCONT');
  });
});

describe('a worker that is told to stop', () => {
  // A wire leads to one server, and several tell of each other by their own addresses.
  it('stores the answer that it has, although the store is slow', async () => {
    deployment = await startDeployment({ workers: 0 });
    const name = 'DATABASE_URL';
    const wire = await openWireTo(deployment.stores[name] ?? '');
    const worker = await deployment.startWorker({ [name]: wire.url });
    // The API has to know of the worker: on a slow machine its first heartbeat comes late.
    await vi.waitFor(async () => expect((await deployment.chat({})).status).toBe(200), patience);
    const before = deployment.simulator.calls.lastId;
    const asked = deployment.chat({ model: 'sim-latency-500' });
    const call = await callAfter(before);
    wire.freeze();
    await call.closed;
    process.kill(worker.pid, 'SIGTERM');
    // Longer than a worker without jobs waits for its store.
    await delay(1800);
    wire.thaw();
    expect(codeOf(await asked)).toEqual(answered);
    expect(await worker.exitCode).toBe(0);
    expect(deployment.simulator.calls.lastId).toBe(before + 1);
    await wire.close();
  });
});

describe('the only worker', () => {
  it('answers all the same when it comes back after its lock is over, with one more call at most', async () => {
    await start({});
    const frozen = pidOf(deployment.workers[0]);
    // Longer than a lock, so that the second run has to renew its own.
    const asked = deployment.chat({ model: 'sim-latency-7000' });
    await callAfter(0);
    process.kill(frozen, 'SIGSTOP');
    await delay(lockMs + 500);
    process.kill(frozen, 'SIGCONT');
    expect(codeOf(await asked)).toEqual(answered);
    expect(deployment.simulator.calls.list().length).toBeLessThanOrEqual(2);
    expect(errors()).toEqual([]);
  });
});
