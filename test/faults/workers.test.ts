import { expect } from 'vitest';
import { freePort } from '../../dev/free-port.js';
import { authorization } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import { eventually, expectCodes, timed } from './support/expectations.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';

const lockMs = 3000;
const stalledCheckMs = 1000;

fault(
  {
    id: 'W1',
    timed: true,
    injected: 'kill -9 of a worker in the middle of a call; another lives',
    callsPerRequest: 2,
    onTopologies: true,
  },
  async (books) => {
    await books.start({ workers: 2 });
    const asked = books.ask({ model: 'sim-latency-1000' });
    await asked.arrived();
    await books.kill(await books.jobs.workerOf('openai'));
    const tookMs = await timed(asked.reply);
    expect(codeOf(await asked.reply)).toBe('ok');
    // The call takes a second; a second more is for the machine, which runs the catalogue on both stores at once.
    expect(tookMs).toBeLessThan(lockMs + stalledCheckMs + 1000 + 1000);
    return `200, ${tookMs} ms after the kill`;
  },
);

fault(
  {
    id: 'W2',
    timed: true,
    injected: 'kill -9 of the only worker; one job runs, one comes after, a worker starts late',
  },
  async (books) => {
    const { workers, startWorker, simulator } = await books.start();
    const running = books.ask({ model: 'sim-hang' });
    await running.arrived();
    await books.kill(workers[0]);
    const queued = books.ask({});
    const replies = await Promise.all([running.reply, queued.reply]);
    expect(replies.map(codeOf)).toEqual(['timeout', 'timeout']);
    for (const { tookMs } of replies) expect(Math.abs(tookMs - 6000)).toBeLessThan(500);
    const before = simulator.calls.lastId;
    await startWorker();
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    expect(simulator.calls.lastId).toBe(before);
    const late = replies.map(({ tookMs }) => Math.round(tookMs - 6000));
    return `500 timeout, ${late.join(' and ')} ms after the deadline; no call by the late worker`;
  },
);

fault(
  {
    id: 'W1',
    timed: true,
    injected: 'kill -9 of every worker that takes the same job',
    callsPerRequest: 2,
    onTopologies: true,
  },
  async (books) => {
    const { startWorker } = await books.start({ variables: { CHAT_TIMEOUT_MS: '30000' } });
    const asked = books.ask({ model: 'sim-hang', headers: { 'Idempotency-Key': 'deadly' } });
    const first = await asked.arrived();
    await books.kill(await books.jobs.workerOf('openai'));
    await startWorker();
    await books.deployment.simulator.waitForCall(({ model, id }) => model === asked.model && id > first.id);
    await books.kill(await books.jobs.workerOf('openai'));
    await startWorker();
    const startedAt = performance.now();
    const { result: reply, lagMs } = await withLag(() => asked.reply);
    expect(codeOf(reply)).toBe('internal');
    expect(reply.body.retryable).toBe(true);
    // The lock, and the two checks that it takes to call a job stalled; its caller would wait for thirty seconds.
    expect(performance.now() - startedAt).toBeLessThan(lockMs + 2000 + 5000 + lagMs);
    const chat = await fetch(`${books.deployment.url}${reply.headers.get('content-location')}`, {
      headers: { Authorization: authorization },
    });
    expect(await chat.json()).toMatchObject({ status: 'failed', error: { code: 'internal' } });
    expect((await books.chat()).status).toBe(200);
    return `given up after two starts: 500 internal after ${Math.round(reply.tookMs)} ms; the third worker serves`;
  },
);

fault(
  { id: 'W4', injected: 'a worker frozen for 2.5 s, less than what is left of its lock of 8 s' },
  async (books) => {
    // Half of a lock may be over when it is renewed.
    await books.start({ workers: 2, variables: { WORKER_LOCK_MS: '8000' } });
    const asked = books.ask({ model: 'sim-latency-1000' });
    await asked.arrived();
    const { pid } = await books.jobs.workerOf('openai');
    process.kill(pid, 'SIGSTOP');
    setTimeout(() => process.kill(pid, 'SIGCONT'), 2500);
    const reply = await asked.reply;
    expect(codeOf(reply)).toBe('ok');
    return `200 after ${Math.round(reply.tookMs)} ms, one call`;
  },
);

fault({ id: 'W6', injected: 'SIGTERM with two jobs active and three waiting' }, async (books) => {
  const { workers, startWorker, simulator } = await books.start({
    variables: { OPENAI_CONCURRENCY: '2', CHAT_TIMEOUT_MS: '30000' },
  });
  const active = [1, 2].map(() => books.ask({ model: 'sim-latency-1500' }));
  await Promise.all(active.map((asked) => asked.arrived()));
  const waiting = [1, 2, 3].map(() => books.ask({}));
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(5));
  process.kill(workers[0]?.pid ?? 0, 'SIGTERM');
  const tookMs = await timed(workers[0]?.exitCode ?? Promise.reject(new TypeError('no worker')));
  expect(await workers[0]?.exitCode).toBe(0);
  expectCodes(await Promise.all(active.map(({ reply }) => reply)), ['ok']);
  expect(simulator.calls.lastId).toBe(2);
  await startWorker();
  expectCodes(await Promise.all(waiting.map(({ reply }) => reply)), ['ok']);
  return `the active ones 200, no other taken, exit 0 after ${tookMs} ms; the next worker takes the rest`;
});

fault(
  { id: 'W7', timed: true, injected: 'SIGTERM with a job that outlasts the grace of 1 s' },
  async (books) => {
    const { workers } = await books.start({ variables: { SHUTDOWN_GRACE_MS: '1000' } });
    const asked = books.ask({ model: 'sim-hang' });
    const call = await asked.arrived();
    process.kill(workers[0]?.pid ?? 0, 'SIGTERM');
    const tookMs = await timed(workers[0]?.exitCode ?? Promise.reject(new TypeError('no worker')));
    expect(await workers[0]?.exitCode).toBe(0);
    expect(tookMs).toBeLessThan(1000 + 1000);
    expect(codeOf(await asked.reply)).toBe('provider_unavailable');
    await call.closed;
    return `500 provider_unavailable, its call cut, exit 0 after ${tookMs} ms`;
  },
);

const concurrency = 5;
/** Below this many verdicts a breaker stays closed. */
const breakerThreshold = 5;

fault(
  {
    id: 'W9',
    injected: 'one of two workers cannot reach its provider, and probes every half second',
    callsPerRequest: 2,
  },
  async (books) => {
    const { startWorker } = await books.start({
      variables: { OPENAI_CONCURRENCY: String(concurrency), BREAKER_RESET_MS: '500' },
    });
    await startWorker({ OPENAI_BASE_URL: `http://127.0.0.1:${await freePort()}/v1` });
    const replies = await paced({ count: 200, everyMs: 20 }, () => books.chat({ model: 'sim-latency-50' }));
    expectCodes(replies, ['ok', 'provider_error']);
    const failed = replies.filter(({ status }) => status !== 200).length;
    // A job goes back to the queue once; only one that meets the same worker again fails there.
    expect(failed).toBeLessThanOrEqual(breakerThreshold);
    const opened = books.deployment.logs().split('"breaker":"open"').length - 1;
    expect(opened).toBeGreaterThan(1);
    return `${failed} of 200 failed; the worker paused itself ${opened} times`;
  },
);
