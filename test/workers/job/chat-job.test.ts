import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { Failure } from '../../../shared/failures.js';
import type { ChatJob } from '../../../shared/protocol/messages.js';
import { type ModelParameters, parametersFor } from '../../../shared/protocol/model-parameters.js';
import { callChain } from '../../../workers/job/call-chain.js';
import { runChatJob } from '../../../workers/job/chat-job.js';
import { Cancelled, LockLost } from '../../../workers/job/running-job.js';
import { callOf } from '../../support/calls.js';
import { openCircuits } from '../../support/circuits.js';
import { poolMetrics } from '../../support/metrics.js';
import { providerSetups } from '../../support/providers.js';
import { takeJob } from '../../support/running-jobs.js';
import { unavailableResults } from '../../support/stored-results.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

interface RunOptions {
  inMs?: number;
  timeoutMs?: number;
  agoMs?: number;
  preset?: string;
  meanJobMs?: number;
  models?: string[];
  parameters?: ModelParameters;
}

describe.each(providerSetups)('runChatJob with $name', async ({ name, id, load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());

  let circuits: ReturnType<typeof openCircuits>;
  let stop: AbortController;
  let since: number;
  let failures: Failure[];

  beforeEach(() => {
    failures = [];
    circuits = openCircuits();
    stop = new AbortController();
    since = simulator.calls.lastId;
  });
  afterEach(() => circuits.close());

  const run = (
    model: string | undefined,
    {
      inMs = 20_000,
      timeoutMs = 10_000,
      agoMs = 0,
      preset = '',
      meanJobMs = 0,
      models,
      parameters,
    }: RunOptions = {},
  ) => {
    const job: ChatJob = {
      v: 1,
      provider: id,
      turns: [{ role: 'user', content: 'Hello' }],
      deadline: Date.now() + inMs,
      ...{ replyTo: 'node', user: 'me' },
      ...(model !== undefined && { model }),
      parameters,
    };
    const settings = {
      concurrency: 1,
      timeoutMs,
      firstTokenTimeoutMs: timeoutMs,
      idleTimeoutMs: timeoutMs,
      model: preset || undefined,
      ...(models && { models }),
      maxOutputTokens: 100,
      breakerResetMs: 60_000,
    };
    const ended = runChatJob(takeJob({ timestamp: Date.now() - agoMs, data: job, stop: stop.signal }), job, {
      settings,
      ...circuits,
      call: callChain({ provider, ...circuits, metrics: poolMetrics, mayRequeue: () => false }),
      storedResults: unavailableResults(),
      nextAttempts: { begin: async () => undefined },
      times: { meanMs: meanJobMs },
      onFailure: (failure) => failures.push(failure),
    });
    return ended.then(({ outcome }) => outcome);
  };
  const models = () => simulator.calls.list({ since }).map(({ model }) => model);
  const tag = () => `${name.replaceAll(' ', '-')}-${randomUUID()}`;

  it('says why there is no reply, in words that can be logged', async () => {
    await run('sim-status-401');
    expect(failures).toMatchObject([{ code: 'provider_rejected', cause: { name: expect.any(String) } }]);
    await run('sim-echo');
    expect(failures).toHaveLength(1);
  });

  it('answers with the text, the model, the tokens and the times', async () => {
    const startedAt = Date.now();
    const outcome = await run('sim-latency-50', { agoMs: 5000 });
    const tookMs = Date.now() - startedAt;
    expect(outcome).toEqual({
      kind: 'ok',
      text: expect.stringContaining('Hello'),
      model: expect.stringContaining('sim-latency-50'),
      usage: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
      queueMs: expect.any(Number),
      providerMs: expect.any(Number),
    });
    expect(outcome.queueMs).toBeGreaterThanOrEqual(5000);
    expect(outcome.queueMs + outcome.providerMs).toBeLessThanOrEqual(5000 + tookMs + 1);
    expect(outcome.providerMs).toBeGreaterThanOrEqual(49);
  });

  it('asks without the hints that its provider does not take (finding C1)', async () => {
    const hints = { temperature: 1.5, topP: 0.5, seed: 2 ** 40, frequencyPenalty: 0.5, presencePenalty: 2 };
    await run('sim-echo', { parameters: hints });
    const asked = simulator.calls.list().at(-1)?.parameters;
    expect(asked).toEqual({ maxOutputTokens: 100, ...parametersFor(id, hints) });
  });

  it('asks the model of the job, else the configured one', async () => {
    const [own, preset] = [`sim-echo@${tag()}`, `sim-echo@${tag()}`];
    await run(own, { preset });
    await run(undefined, { preset });
    expect(models()).toEqual([own, preset]);
  });

  it("asks of the model what the job says, but for more tokens than the pool's limit", async () => {
    const last = () => simulator.calls.list().at(-1)?.parameters;
    await run('sim-echo', { parameters: { maxOutputTokens: 99, stop: ['never'] } });
    expect(last()).toEqual({ maxOutputTokens: 99, stop: ['never'] });
    await run('sim-echo', { parameters: { maxOutputTokens: 101 } });
    expect(last()).toEqual({ maxOutputTokens: 100 });
    expect(await run('sim-echo', { parameters: { maxOutputTokens: 1 } })).toMatchObject({
      kind: 'truncated',
      text: 'Simu',
    });
    await run('sim-echo');
    expect(last()).toEqual({ maxOutputTokens: 100 });
  });

  it('takes a blank reply where the caller named what may have come before any text', async () => {
    expect(await run('sim-echo', { parameters: { stop: ['Simulated'] } })).toMatchObject({
      kind: 'ok',
      text: '',
      usage: { outputTokens: 0 },
    });
    expect(await run('sim-verbatim', { parameters: { maxOutputTokens: 9, stop: ['never'] } })).toMatchObject({
      text: 'Hello',
    });
    expect(await run('sim-empty', { parameters: { maxOutputTokens: 9 } })).toMatchObject({
      code: 'provider_error',
    });
  });

  it('makes no call without a model', async () => {
    expect(await run(undefined)).toMatchObject({
      kind: 'failed',
      code: 'invalid_request',
      retryable: false,
    });
    expect(models()).toEqual([]);
  });

  it('makes no call for a model that callers may not name, unless it is the default one', async () => {
    const refused = { kind: 'failed', code: 'invalid_request', retryable: false };
    expect(await run('projects/p/locations/l/endpoints/1')).toMatchObject(refused);
    expect(await run('sim-verbatim', { models: ['sim-e*'] })).toMatchObject(refused);
    expect(models()).toEqual([]);
    expect(await run('sim-echo', { models: ['sim-e*'] })).toMatchObject({ kind: 'ok' });
    expect(await run('sim-verbatim', { models: ['sim-e*'], preset: 'sim-verbatim' })).toMatchObject({
      kind: 'ok',
    });
  });

  it('makes no call for a job that nobody waits for any more', async () => {
    expect(await run('sim-echo', { inMs: 0, agoMs: 1000 })).toMatchObject({
      kind: 'failed',
      code: 'timeout',
    });
    expect(models()).toEqual([]);
  });

  it('makes no call for a job that waited for most of its time and has less than half a usual call left', async () => {
    const late = await run('sim-echo', { agoMs: 8000, inMs: 2000, meanJobMs: 8000 });
    expect(late).toMatchObject({ code: 'overloaded', retryable: true, retryAfterMs: 8000, providerMs: 0 });
    expect(models()).toEqual([]);
  });

  it('tries a job that has hardly waited, however long calls usually take', async () => {
    expect(await run('sim-echo', { agoMs: 10, inMs: 2000, meanJobMs: 8000 })).toMatchObject({ kind: 'ok' });
    expect(await run('sim-echo', { agoMs: 8000, inMs: 5000, meanJobMs: 8000 })).toMatchObject({ kind: 'ok' });
  });

  it('answers after a failure that passes', async () => {
    const model = `sim-fail-1-500-${tag()}`;
    expect(await run(model)).toMatchObject({ kind: 'ok', text: expect.stringContaining('Hello') });
    expect(models()).toEqual([model, model]);
  });

  it('waits as long as the provider asks before it tries again', async () => {
    const outcome = await run(`sim-limit-1-1-${tag()}`);
    expect(outcome.kind).toBe('ok');
    expect(outcome.providerMs).toBeGreaterThanOrEqual(1000);
  });

  it('does not wait longer than the caller does', async () => {
    const outcome = await run(`sim-limit-1-30-${tag()}`);
    expect(outcome).toMatchObject({ code: 'provider_rate_limited', retryable: true, retryAfterMs: 30_000 });
    expect(models()).toHaveLength(1);
  });

  it('fails after two attempts', async () => {
    expect(await run('sim-status-500')).toMatchObject({
      kind: 'failed',
      code: 'provider_error',
      retryable: true,
    });
    expect(models()).toHaveLength(2);
  });

  it.each([
    ['sim-status-400', 'provider_rejected'],
    ['sim-empty', 'provider_error'],
  ])('asks once when another try would end the same: %s', async (model, code) => {
    expect(await run(model)).toMatchObject({ kind: 'failed', code, retryable: false });
    expect(models()).toHaveLength(1);
  });

  it('says that the provider refused our own credentials, and of no other refusal', async () => {
    for (const status of [401, 403])
      expect(await run(`sim-status-${status}`)).toMatchObject({
        ...{ kind: 'failed', code: 'provider_rejected', credentialsRefused: true },
      });
    expect(await run('sim-status-400')).toHaveProperty('credentialsRefused', undefined);
  });

  it('tells a reply that was cut and one that was withheld', async () => {
    expect(await run('sim-length')).toMatchObject({ kind: 'truncated', text: expect.stringMatching(/./) });
    expect(await run('sim-blocked')).toMatchObject({
      kind: 'blocked',
      queueMs: expect.any(Number),
      providerMs: expect.any(Number),
    });
  });

  it.each([
    ['provider_timeout', { timeoutMs: 500 }],
    ['timeout', { inMs: 500 }],
  ])('ends a hanging call with %s, closes its socket, and does not repeat it', async (code, limits) => {
    const model = `sim-hang@${tag()}`;
    expect(await run(model, limits)).toMatchObject({ kind: 'failed', code });
    const [call] = simulator.calls.list({ since });
    await call?.closed;
    expect(call?.clientClosedFirst).toBe(true);
    expect(models()).toEqual([model]);
  });

  it('ends a call when the process has to, and does not repeat it', async () => {
    const model = `sim-hang@${tag()}`;
    const running = run(model);
    const call = await simulator.waitForCall((one) => one.model === model);
    stop.abort(new Failure('provider_unavailable'));
    expect(await running).toMatchObject({ kind: 'failed', code: 'provider_unavailable', retryable: true });
    await call.closed;
    expect(models()).toEqual([model]);
  });

  it.each(['sim-hang', 'sim-hang-body'])('ends as cancelled in the middle of %s', async (behaviour) => {
    const model = `${behaviour}@${tag()}`;
    const running = run(model);
    const call = await simulator.waitForCall((one) => one.model === model);
    stop.abort(new Cancelled());
    expect(await running).toEqual({
      kind: 'cancelled',
      queueMs: expect.any(Number),
      providerMs: expect.any(Number),
    });
    await call.closed;
    expect(call.clientClosedFirst).toBe(true);
    expect(models()).toEqual([model]);
    expect(failures).toEqual([]);
  });

  it('ends as cancelled in the pause before a retry, and makes none', async () => {
    const model = `sim-retry-after-5@${tag()}`;
    const running = run(model);
    const call = await simulator.waitForCall((one) => one.model === model);
    await call.closed;
    stop.abort(new Cancelled());
    expect(await running).toMatchObject({ kind: 'cancelled' });
    expect(models()).toEqual([model]);
  });

  it.each(['sim-hang', 'sim-retry-after-5'])(
    'breaks off when its lock is lost during %s',
    async (behaviour) => {
      const model = `${behaviour}@${tag()}`;
      const running = run(model);
      const call = await simulator.waitForCall((one) => one.model === model);
      if (behaviour !== 'sim-hang') await call.closed;
      stop.abort(new LockLost());
      await expect(running).rejects.toThrow(LockLost);
      await call.closed;
      expect(models()).toEqual([model]);
      expect(failures).toEqual([]);
      expect(circuits.circuits.of(model).breaker.state).toBe('closed');
    },
  );

  it('makes no call for a job that was cancelled before', async () => {
    stop.abort(new Cancelled());
    expect(await run('sim-echo')).toMatchObject({ kind: 'cancelled' });
    expect(models()).toEqual([]);
  });

  it('tells the breaker nothing of cancelled calls', async () => {
    const model = `sim-hang@${tag()}`;
    for (let n = 0; n < 6; n += 1) {
      const running = run(model);
      await simulator.waitForCall((call) => call.model === model && call.id > since + n);
      stop.abort(new Cancelled());
      await running;
      stop = new AbortController();
    }
    expect(circuits.circuits.of(model).breaker.state).toBe('closed');
  });

  /** Has the model fail this often. */
  const fail = async (model: string, times: number) => {
    const failing = () => Promise.reject(new Failure('provider_error'));
    for (let n = 0; n < times; n += 1)
      await circuits.circuits
        .of(model)
        .run(callOf(), failing)
        .catch(() => {});
  };

  it("makes no call while the model's breaker is open, but of another model", async () => {
    await fail('sim-echo', 5);
    expect(await run('sim-echo')).toMatchObject({ kind: 'failed', code: 'provider_unavailable' });
    expect(models()).toEqual([]);
    expect(await run('sim-latency-1')).toMatchObject({ kind: 'ok' });
  });

  // The second attempt meets the breaker that the first one opened, and its refusal hides what the provider did.
  it("keeps the provider's failure when it opens the breaker", async () => {
    await fail('sim-status-500', 4);
    expect(await run('sim-status-500')).toMatchObject({ code: 'provider_error' });
  });
});

describe('runChatJob', () => {
  it('throws what nobody expected', async () => {
    const error = new TypeError('x');
    const provider = {
      id: 'openai' as const,
      run: () => Promise.reject(error),
      close: () => {},
    };
    const circuits = openCircuits();
    const turns = [{ role: 'user' as const, content: 'Hello' }];
    const job: ChatJob = {
      v: 1,
      provider: 'openai',
      model: 'm',
      turns,
      deadline: Date.now() + 1000,
      ...{ replyTo: 'n', user: 'me' },
    };
    const settings = {
      concurrency: 1,
      timeoutMs: 1000,
      firstTokenTimeoutMs: 40_000,
      idleTimeoutMs: 20_000,
      model: undefined,
      maxOutputTokens: 1,
      breakerResetMs: 60_000,
    };
    const running = runChatJob(takeJob({ data: job }), job, {
      settings,
      ...circuits,
      call: callChain({ provider, ...circuits, metrics: poolMetrics, mayRequeue: () => false }),
      storedResults: unavailableResults(),
      nextAttempts: { begin: async () => undefined },
      times: { meanMs: 0 },
      onFailure: () => {},
    });
    await expect(running).rejects.toBe(error);
    circuits.close();
  });
});
