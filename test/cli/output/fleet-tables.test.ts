import { describe, expect, it } from 'vitest';
import { fleetLines, renderFleet } from '../../../cli/output/fleet-tables.js';
import type { Fleet, FleetWorker } from '../../../shared/contracts/fleet-contract.js';

const now = Date.UTC(2026, 10, 22, 12);
const ago = (ms: number) => new Date(now - ms).toISOString();
const busy: FleetWorker = {
  ...{
    worker: 'one',
    state: 'serving',
    concurrency: 20,
    inFlight: 7,
    meanJobMs: 3000,
    simulated: false,
    settingsVersion: 3,
  },
  calls: { count: 100, errorRate: 0.051, rateLimitRate: 0, latencyMs: { p50: 2900, p95: 6100 } },
  breakers: [
    { model: null, state: 'half-open', reason: 'credentials' },
    { model: 'm'.repeat(100), state: 'limited', reason: 'provider_rate_limited', nextProbeAt: ago(-12_000) },
  ],
  lastError: { code: 'provider_timeout', at: ago(300_000), since: ago(400_000) },
  ...{ release: '0.4.0', host: 'h' },
};
const lost: FleetWorker = {
  ...{ worker: 'two', state: 'silent', silentSince: ago(4000), concurrency: 1, inFlight: 0, meanJobMs: 0 },
  ...{ breakers: [], simulated: false, settingsVersion: 0, release: '0.4.0', host: 'h' },
};
const fleetOf = (...workers: FleetWorker[]): Fleet => ({
  ...{ at: ago(0), release: '1', queue: { store: 'redis', status: 'ok' } },
  providers: [
    {
      ...{ provider: 'openai', state: 'serving', kind: 'real', concurrency: 20, inFlight: 7, workers },
      queue: { waiting: 3, active: 7, oldestSince: ago(7_300_000) },
      chats: { ended: 43, failed: 3 },
    },
    { provider: 'bedrock', state: 'absent', kind: 'unknown', concurrency: 0, inFlight: 0, workers: [] },
  ],
});

describe('renderFleet', () => {
  it('has a table of the providers, and one of the workers', () => {
    const [providers = '', workers = ''] = renderFleet(fleetOf(busy, lost), now).split('\n\n');
    expect(providers.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['PROVIDER', 'STATE', 'KIND', 'WORKERS', 'IN FLIGHT', 'WAITING', 'OLDEST', 'FAILED'],
      ['openai', 'serving', 'real', '2', '7/20', '3', '2 h', '3/43'],
      ['bedrock', 'absent', '-', '0', '0/0', '-', '-', '-'],
    ]);
    const [, first, second] = workers.split('\n').map((line) => line.split(/ {2,}/));
    const account = 'account half-open (credentials)';
    const model = `${'m'.repeat(39)}… limited (provider_rate_limited), next call in 12 s`;
    expect(first).toEqual([
      ...['openai', 'one', 'serving', '7/20', '2900 ms', '6100 ms', '5 %', '0 %'],
      ...[`${account}; ${model}`, 'provider_timeout 5 min ago', '3', '0.4.0'],
    ]);
    expect(second?.slice(0, 4)).toEqual(['openai', 'two', 'silent 4 s', '0/1']);
  });

  it('has what is failing first, says for whom and since when a breaker holds, and needs no workers', () => {
    const idle = {
      ...busy,
      breakers: [{ model: 'm', state: 'half-open', since: ago(300_000) }],
    } as FleetWorker;
    const fleet = fleetOf(idle);
    const failing = { code: 'provider_error' as const, since: ago(1000) };
    const providers = fleet.providers.map((one) => (one.provider === 'openai' ? { ...one, failing } : one));
    const text = renderFleet({ ...fleet, providers: providers.toReversed() }, now);
    expect(text.split('\n')[1]).toMatch(/^openai +failing \(provider_error\) +real/);
    expect(text).toContain('m half-open, no call for 5 min');
    const one = { model: 'm', state: 'open', reason: 'provider_error', user: 'id' } as const;
    const ofAccount = { ...one, model: null, state: 'half-open' as const };
    const ofUsers = { ...busy, breakers: [one, ofAccount, { ...one, user: 'other' }] };
    expect(renderFleet(fleetOf(ofUsers), now)).toContain(
      'm refused for 2 users (provider_error); account half-open for 1 user (provider_error)',
    );
    const chats = { ended: 10, failed: 9, code: failing.code, model: 'm'.repeat(100) };
    const ofOne = fleet.providers.map((one) => ({ ...one, failing, chats }));
    const named = renderFleet({ ...fleet, providers: ofOne }, now);
    expect(named).toContain(`failing (provider_error of ${'m'.repeat(39)}…)`);
    expect(renderFleet(fleetOf(), now)).not.toContain('BREAKERS');
  });
});

describe('fleetLines', () => {
  it('has a line for the queue, each provider and each worker, the same as long as nothing changes', () => {
    const lines = [...fleetLines(fleetOf(busy, lost), now).values()];
    expect(lines).toEqual([
      'queue ok',
      'openai serving, real, 7 of 20 in flight, 3 waiting',
      expect.stringMatching(
        /^openai one serving, 7 of 20 in flight, account half-open \(credentials\), m+… limited/,
      ),
      'openai two silent, 0 of 1 in flight',
      'bedrock absent, unknown, 0 of 0 in flight',
    ]);
    expect([...fleetLines(fleetOf(busy, lost), now + 60_000).values()]).toEqual(lines);
  });
});

describe('a heartbeat that wants to write on the terminal', () => {
  const hostile: FleetWorker = {
    ...lost,
    worker: '\u001b[2Jgone\nopenai',
    release: '\u202eevil\u2028',
    lastError: { code: '\u001b]0;title\u0007', at: ago(0), since: ago(0) },
  };

  it('shows its control characters as what they are', () => {
    const text = renderFleet(fleetOf(hostile), now);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
    expect(text).toContain('\ufffd[2Jgone\ufffdopenai');
    for (const line of fleetLines(fleetOf(hostile), now).values())
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  });
});
