import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startSimulator } from '../../dev/simulator/server.js';
import { Failure } from '../../shared/failures.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../shared/protocol/stored-chat.js';
import { Cancelled } from '../../workers/job/running-job.js';
import { StoredResults } from '../../workers/job/stored-results.js';
import type { Provider } from '../../workers/providers/provider.js';
import { chatJobOf, runJob } from '../support/chat-jobs.js';
import { openCircuits } from '../support/circuits.js';
import { providerSetups } from '../support/providers.js';
import { createRecordingLog } from '../support/recording-log.js';
import { takeJob } from '../support/running-jobs.js';
import { type SharedStore, startSharedStore } from '../support/shared-store.js';
import { findStores } from '../support/stores.js';

const stores = await findStores();
const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());
const { log } = createRecordingLog();
const ttlMs = 60_000;
const cancelled: Outcome = { kind: 'cancelled', queueMs: 0, providerMs: 0 };
const earlier: Outcome = { kind: 'ok', text: 'earlier', model: 'm', queueMs: 1, providerMs: 2 };

describe.each(stores)('runChatJob of a stored chat, with records in $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let provider: Provider;
  let circuits: ReturnType<typeof openCircuits>;
  let stop: AbortController;
  let failures: Failure[];
  let id: string;
  let since: number;

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    const setup = providerSetups[0];
    if (setup === undefined) throw new Error('no provider');
    provider = await setup.load(simulator.url);
  });
  afterAll(async () => {
    provider?.close();
    await shared?.stop();
  });
  beforeEach(() => {
    circuits = openCircuits();
    stop = new AbortController();
    failures = [];
    id = randomUUID();
    since = simulator.calls.lastId;
    return () => circuits.close();
  });

  const run = (model: string, { inMs = 20_000, by = provider } = {}) => {
    const deadline = Date.now() + inMs;
    const job = chatJobOf({ model, deadline, keptUntil: Date.now() + ttlMs });
    return runJob(takeJob({ id, data: job, stop: stop.signal }), job, {
      ...{ provider: by, circuits },
      onFailure: (failure) => failures.push(failure),
      storedResults: new StoredResults({ records: shared.store.records, log }),
    });
  };
  const record = (outcome: Outcome) =>
    shared.another.records.create(resultKey(id), { value: encodeStoredResult(outcome, 1), ttlMs });
  const recorded = async () => {
    const text = await shared.another.records.read(resultKey(id));
    return text === undefined ? undefined : decodeStoredResult(text).outcome;
  };
  const calls = () => simulator.calls.list({ since });

  it('records the answer before the job ends, so that who takes it over makes no call', async () => {
    const outcome = await run('sim-echo');
    expect(outcome).toMatchObject({ kind: 'ok', text: expect.stringContaining('Hello') });
    expect(await recorded()).toEqual(outcome);
    expect(await run('sim-echo')).toEqual(outcome);
    expect(calls()).toHaveLength(1);
  });

  it.each([
    ['an answer', earlier],
    ['a cancel', cancelled],
  ])('makes no call when %s is recorded, however late the job is taken over', async (_, outcome) => {
    await record(outcome);
    expect(await run('sim-echo', { inMs: -1 })).toEqual(outcome);
    expect([calls(), failures]).toEqual([[], []]);
  });

  it('records that it was cancelled', async () => {
    const running = run('sim-hang');
    await simulator.waitForCall((call) => call.id > since);
    stop.abort(new Cancelled());
    const outcome = await running;
    expect(outcome).toMatchObject({ kind: 'cancelled' });
    expect(await recorded()).toEqual(outcome);
  });

  it.each([
    ['sim-status-500', 20_000, 'provider_error', true],
    ['sim-status-400', 20_000, 'provider_rejected', false],
    ['sim-echo', -1, 'timeout', true],
  ])('records a failure, whether it may pass or not: %s in %i ms', async (model, inMs, code, retryable) => {
    const outcome = await run(model, { inMs });
    expect(outcome).toMatchObject({ kind: 'failed', code, retryable });
    expect(await recorded()).toEqual(outcome);
  });

  it('records nothing of a job that was lost', async () => {
    const lost = new Error('lost');
    const running = run('sim-hang');
    const call = await simulator.waitForCall(({ id }) => id > since);
    stop.abort(lost);
    await expect(running).rejects.toBe(lost);
    await call.closed;
    expect(await recorded()).toBeUndefined();
  });

  it('records nothing of an unexpected error: the pool worker does when the job has failed', async () => {
    const error = new TypeError('x');
    const by: Provider = { ...provider, run: () => Promise.reject(error) };
    await expect(run('sim-echo', { by })).rejects.toBe(error);
    expect(await recorded()).toBeUndefined();
  });
});
