import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { Failure } from '../../../shared/failures.js';
import { type ModelParameters, parametersFor } from '../../../shared/protocol/model-parameters.js';
import { Cancelled, LockLost } from '../../../workers/gate/ends.js';
import { chatJobOf, poolSettings, runJob } from '../../support/chat-jobs.js';
import { openGate } from '../../support/gate.js';
import { providerSetups } from '../../support/providers.js';
import { takeJob } from '../../support/running-jobs.js';

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

  let open: ReturnType<typeof openGate>;
  let stop: AbortController;
  let since: number;
  let failures: Failure[];

  beforeEach(() => {
    failures = [];
    open = openGate();
    stop = new AbortController();
    since = simulator.calls.lastId;
  });
  afterEach(() => open.close());

  const run = (model: string | undefined, options: RunOptions = {}) => {
    const { inMs = 20_000, timeoutMs = 10_000, agoMs = 0, preset, meanJobMs = 0 } = options;
    const { models, parameters } = options;
    const job = chatJobOf({ provider: id, deadline: Date.now() + inMs, ...(model && { model }), parameters });
    return runJob(takeJob({ timestamp: Date.now() - agoMs, data: job, stop: stop.signal }), job, {
      ...{ provider, open, times: { meanMs: meanJobMs } },
      settings: poolSettings({ timeoutMs, model: preset, ...(models && { models }) }),
      onFailure: (failure) => failures.push(failure),
    });
  };
  const models = () => simulator.calls.list({ since }).map(({ model }) => model);
  const tag = () => `${name.replaceAll(' ', '-')}-${randomUUID()}`;

  it('a job -> the text, the model, the tokens and the times', async () => {
    const startedAt = Date.now();
    const outcome = await run('sim-latency-50', { agoMs: 5000 });
    const tookMs = Date.now() - startedAt;
    expect(outcome).toEqual({
      kind: 'ok',
      text: expect.stringContaining('Hello'),
      model: expect.stringContaining('sim-latency-50'),
      usage: expect.objectContaining({ inputTokens: expect.any(Number), outputTokens: expect.any(Number) }),
      queueMs: expect.any(Number),
      providerMs: expect.any(Number),
    });
    expect(outcome.queueMs).toBeGreaterThanOrEqual(5000);
    expect(outcome.queueMs + outcome.providerMs).toBeLessThanOrEqual(5000 + tookMs + 1);
    expect(outcome.providerMs).toBeGreaterThanOrEqual(49);
    expect(failures).toEqual([]);
  });

  it("parameters -> all are sent but hints unknown to the provider, within the pool's limit", async () => {
    const last = () => simulator.calls.list().at(-1)?.parameters;
    const hints = { temperature: 1.5, topP: 0.5, seed: 2 ** 40, frequencyPenalty: 0.5, presencePenalty: 2 };
    await run('sim-echo', { parameters: hints });
    expect(last()).toEqual({ maxOutputTokens: 100, ...parametersFor(id, hints) });
    await run('sim-echo', { parameters: { maxOutputTokens: 99, stop: ['never'] } });
    expect(last()).toEqual({ maxOutputTokens: 99, stop: ['never'] });
    await run('sim-echo', { parameters: { maxOutputTokens: 101 } });
    expect(last()).toEqual({ maxOutputTokens: 100 });
  });

  it('a model that refuses hints -> asked once more without them, and at once when it has refused each', async () => {
    const model = `sim-no-hints@${tag()}`;
    const parameters: ModelParameters = { temperature: 0.5, reasoningEffort: 'low', stop: ['never'] };
    const ignored = Object.keys(parametersFor(id, parameters)).filter((name) => name !== 'stop');
    for (const calls of ignored.length > 1 ? [2, 4, 5] : [2, 3]) {
      expect(await run(model, { parameters })).toMatchObject({ kind: 'ok', ignored });
      expect(models()).toHaveLength(calls);
    }
    expect(simulator.calls.list().at(-1)?.parameters).toEqual({ maxOutputTokens: 100, stop: ['never'] });
    expect(failures).toEqual([]);
  });

  it('a blank reply -> counts where the caller named what may have come before any text', async () => {
    const blank = { kind: 'ok', text: '', usage: { outputTokens: 0 } };
    expect(await run('sim-echo', { parameters: { stop: ['Simulated'] } })).toMatchObject(blank);
    expect(await run('sim-empty', { parameters: { maxOutputTokens: 9 } })).toMatchObject({
      code: 'provider_error',
    });
  });

  it('no model, or one that callers may not name, unless it is the default -> no call', async () => {
    const refused = { kind: 'failed', code: 'invalid_request', retryable: false };
    expect(await run(undefined)).toMatchObject(refused);
    expect(await run('projects/p/locations/l/endpoints/1')).toMatchObject(refused);
    expect(await run('sim-verbatim', { models: ['sim-e*'] })).toMatchObject(refused);
    expect(models()).toEqual([]);
    const preset = { models: ['sim-e*'], preset: 'sim-verbatim' };
    expect(await run('sim-echo', preset)).toMatchObject({ kind: 'ok' });
    expect(await run('sim-verbatim', preset)).toMatchObject({ kind: 'ok' });
  });

  it('a job that was cancelled, has expired, or has less than half a usual call left -> no call', async () => {
    expect(await run('sim-echo', { inMs: 0, agoMs: 1000 })).toMatchObject({ code: 'timeout' });
    const late = await run('sim-echo', { agoMs: 8000, inMs: 2000, meanJobMs: 8000 });
    expect(late).toMatchObject({ code: 'overloaded', retryable: true, retryAfterMs: 8000, providerMs: 0 });
    stop.abort(new Cancelled());
    expect(await run('sim-echo')).toMatchObject({ kind: 'cancelled' });
    expect(models()).toEqual([]);
  });

  it('a job that has hardly waited -> a call, however long calls usually take', async () => {
    expect(await run('sim-echo', { agoMs: 10, inMs: 2000, meanJobMs: 8000 })).toMatchObject({ kind: 'ok' });
    expect(await run('sim-echo', { agoMs: 8000, inMs: 5000, meanJobMs: 8000 })).toMatchObject({ kind: 'ok' });
  });

  const refused = { kind: 'failed', code: 'provider_rejected', retryable: false };
  it.each<[string, number, object]>([
    ['sim-length', 1, { kind: 'truncated', text: expect.stringMatching(/./) }],
    ['sim-blocked', 1, { kind: 'blocked', queueMs: expect.any(Number), providerMs: expect.any(Number) }],
    ['sim-status-401', 1, { ...refused, credentialsRefused: true }],
    ['sim-status-400', 1, { ...refused, credentialsRefused: undefined }],
    ['sim-empty', 1, { kind: 'failed', code: 'provider_error', retryable: false }],
    ['sim-status-500', 2, { kind: 'failed', code: 'provider_error', retryable: true }],
  ])('%s -> ends after %i calls as that, and says why it has no reply', async (model, calls, outcome) => {
    const ended = await run(model);
    expect(ended).toMatchObject(outcome);
    expect(models()).toHaveLength(calls);
    const { code } = ended as { code?: string };
    expect(failures).toMatchObject(code ? [{ code, cause: { name: expect.any(String) } }] : []);
  });

  const times = { queueMs: expect.any(Number), providerMs: expect.any(Number) };
  const cancelled = { kind: 'cancelled', ...times };
  const lost = new LockLost();
  const stopping = new Failure('provider_unavailable');
  it.each<[string, string, Error, object]>([
    ['is stopped', 'sim-hang', stopping, { code: 'provider_unavailable' }],
    ['is cancelled', 'sim-hang', new Cancelled(), cancelled],
    ['is cancelled', 'sim-retry-after-5', new Cancelled(), cancelled],
    ['has lost its lock', 'sim-hang', lost, lost],
    ['has lost its lock', 'sim-retry-after-5', lost, lost],
  ])('a job that %s in the middle of %s -> no other call', async (_, behaviour, reason, end) => {
    const model = `${behaviour}@${tag()}`;
    const running = run(model).catch((error) => error);
    const call = await simulator.waitForCall((one) => one.model === model);
    // The pause before the retry begins after the first call.
    if (behaviour !== 'sim-hang') await call.closed;
    stop.abort(reason);
    expect(await running).toMatchObject(end);
    await call.closed;
    expect(call.clientClosedFirst).toBe(behaviour === 'sim-hang');
    expect(models()).toEqual([model]);
    expect(failures).toHaveLength('code' in end ? 1 : 0);
    expect(open.gate.worstState).toBe('closed');
  });
});
