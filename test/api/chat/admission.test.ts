import { beforeEach, describe, expect, it } from 'vitest';
import { admit, backlogMs, resolveDeadlines } from '../../../api/chat/admission.js';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import type { ProviderId, Target } from '../../../shared/contracts/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import { unfitProviders } from '../../../shared/protocol/chat-content.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { command } from '../../support/attached.js';
import { heartbeatOf } from '../../support/heartbeats.js';
import { userNamed } from '../../support/identities.js';

const limits = { timeoutMs: 55_000, maxMs: 300_000, maxStreamMs: 200_000 };
const sink = { begin: () => {}, write: () => true, drained: async () => {} };
const stream = { sink, from: undefined };
const stored = (isAsync: boolean) => ({
  ...{ owner: userNamed('me'), key: 'k', isAsync },
  ...{ onResolved: () => {}, onDetached: () => {} },
});

const resolve = (own: Partial<ChatCommand>, now = 1_000_000) => {
  const { waitUntil, deadline, startBy } = resolveDeadlines(command(own), limits, now);
  return [waitUntil - now, startBy - now, deadline - now];
};

describe('resolveDeadlines', () => {
  it.each<[string, Partial<ChatCommand>, number[]]>([
    ['a chat', {}, [55_000, 55_000, 55_000]],
    ['a chat with a key', { storeOptions: stored(false) }, [55_000, 55_000, 55_000]],
    ['a chat that says how long it waits', { waitMs: 7000 }, [7000, 7000, 7000]],
    ['a chat that has taken its time to arrive', { elapsedMs: 5000.4 }, [50_000, 50_000, 50_000]],
    ['an asynchronous chat', { storeOptions: stored(true) }, [0, 300_000, 300_000]],
    ['one that waits', { storeOptions: stored(true), waitMs: 7000 }, [7000, 300_000, 300_000]],
    ['a stream, which has to begin in time', { stream }, [255_000, 55_000, 255_000]],
    ['a stream that arrived late', { stream, elapsedMs: 5000 }, [250_000, 50_000, 250_000]],
    ['a stream with a key', { stream, storeOptions: stored(false) }, [255_000, 55_000, 255_000]],
    ['a stream whose caller means the whole', { stream, waitMs: 7000 }, [7000, 7000, 7000]],
    ['a chat whose client gives up sooner', { clientTimeoutMs: 9000 }, [9000, 9000, 9000]],
    ['one whose caller does', { clientTimeoutMs: 9000, waitMs: 7000 }, [7000, 7000, 7000]],
    ['a chat of another API', { timeoutMs: 250_000 }, [250_000, 250_000, 250_000]],
    ['one whose client waits for less', { timeoutMs: 250_000, clientTimeoutMs: 9000 }, [9000, 9000, 9000]],
    ['for more', { timeoutMs: 90_000, clientTimeoutMs: 250_000 }, [250_000, 250_000, 250_000]],
    ['for too long', { timeoutMs: 90_000, clientTimeoutMs: 999_000 }, [300_000, 300_000, 300_000]],
    ['a stream of another API', { stream, timeoutMs: 250_000 }, [450_000, 250_000, 450_000]],
    [
      'one of those that is asynchronous',
      { storeOptions: stored(true), timeoutMs: 9 },
      [0, 300_000, 300_000],
    ],
    [
      'a stream whose client waits for its beginning',
      { stream, clientTimeoutMs: 9000 },
      [209_000, 9000, 209_000],
    ],
  ])('waits, has to begin and may take: %s', (_, own, expected) => {
    expect(resolve(own)).toEqual(expected);
  });

  it('gives whole milliseconds', () => {
    for (const time of resolve({ stream, elapsedMs: 0.3 }, 1_000_000.4)) expect(time % 1).toBeCloseTo(0.6);
  });

  it.each([{ elapsedMs: 55_000 }, { waitMs: 1000, elapsedMs: 1000 }, { stream, elapsedMs: 60_000 }])(
    'refuses what comes too late: %j',
    (own) => {
      expect(() => resolve(own)).toThrow(
        expect.objectContaining({ code: 'timeout', facts: { provider: 'openai', neverCalled: true } }),
      );
    },
  );
});

it.each<[string, Partial<ChatCommand>, number]>([
  ['a chat', {}, 55_000],
  ['one that has come late', { elapsedMs: 5000 }, 50_000],
  ['one that may take longer', { timeoutMs: 250_000 }, 55_000],
  ['one that may queue for longer', { timeoutMs: 250_000, queueMs: 240_000 }, 240_000],
  ['one that may queue for longer than it may take', { timeoutMs: 90_000, queueMs: 240_000 }, 90_000],
  ['one whose client gives up sooner', { clientTimeoutMs: 9000, timeoutMs: 90_000, queueMs: 60_000 }, 9000],
  ['one whose caller says for how long', { waitMs: 250_000, queueMs: 240_000 }, 250_000],
  ['an asynchronous one', { storeOptions: stored(true), queueMs: 240_000 }, 300_000],
])('%s (%j) -> may wait in the queue for %i ms', (_, own, expected) => {
  const { startBy } = resolveDeadlines(command(own), limits, 1_000_000);
  expect(backlogMs(command(own), { startBy, now: 1_000_000, timeoutMs: 55_000 })).toBe(expected);
});

const shares = new UserShares();

describe('admit with a fallback', () => {
  let now = 0;
  let heartbeats: Heartbeats;
  let pools: LivePools;
  beforeEach(() => {
    now = 100_000;
    heartbeats = new Heartbeats({ since: 0, now: () => now });
    pools = new LivePools(heartbeats);
  });
  const beat = (provider: ProviderId, own: Partial<PoolHeartbeat> = {}) =>
    heartbeats.add(heartbeatOf({ provider, concurrency: 2, meanJobMs: 100, defaultModel: 'm', ...own }));
  const ask = (...fallback: Target[]) =>
    admit(command(), { link: { pools, check: async () => {} }, shares, timeoutMs: 1000, fallback });

  it('asks the provider first, and keeps those for later that somebody serves', async () => {
    for (const provider of ['openai', 'anthropic'] as const) beat(provider);
    beat('bedrock', { state: 'paused' });
    const fallback = [{ provider: 'anthropic' }, { provider: 'bedrock' }, { provider: 'vertexai' }] as const;
    expect(await ask(...fallback)).toEqual({
      provider: 'openai',
      model: 'm',
      fallback: [{ provider: 'anthropic' }],
    });
  });

  it('asks the first of the fallback that would do it in time, and says whom it has passed over', async () => {
    beat('anthropic', { inFlight: 2, waiting: 100 });
    beat('vertexai');
    const vertexai = { provider: 'vertexai', model: 'other' } as const;
    expect(await ask({ provider: 'anthropic' }, vertexai)).toEqual({
      ...vertexai,
      earlier: [
        { provider: 'openai', code: 'provider_unavailable', retryable: true },
        { provider: 'anthropic', code: 'overloaded', retryable: true, retryAfterMs: expect.any(Number) },
      ],
    });
  });

  it('names only models that were checked among those it has passed over', async () => {
    const canary = 'sk-canary';
    beat('openai', { inFlight: 2, waiting: 100 });
    beat('anthropic', { state: 'paused' });
    beat('bedrock', { models: ['m'] });
    beat('vertexai');
    const { earlier } = await ask(
      ...(['anthropic', 'bedrock'] as const).map((provider) => ({ provider, model: canary })),
      { provider: 'vertexai' },
    );
    expect(earlier).toMatchObject([{ model: 'm', code: 'overloaded' }, {}, { code: 'invalid_request' }]);
    expect(JSON.stringify(earlier)).not.toContain(canary);
  });

  it('strictly asks nobody who would ignore a parameter', async () => {
    for (const provider of ['openai', 'anthropic', 'vertexai'] as const) beat(provider, { simulated: true });
    const fallback = [{ provider: 'anthropic' }, { provider: 'vertexai' }] as const;
    const options = { link: { pools, check: async () => {} }, shares, timeoutMs: 1000, fallback };
    const asked = command({ parameters: { seed: 1 } });
    expect(await admit(asked, options)).toMatchObject({ fallback });
    expect(await admit({ ...asked, isStrict: true }, options)).toMatchObject({ fallback: [fallback[1]] });
  });

  it('strictly asks nobody who would get the conversation changed', async () => {
    for (const provider of ['openai', 'anthropic', 'vertexai'] as const) beat(provider, { simulated: true });
    const fallback = [{ provider: 'anthropic' }, { provider: 'vertexai' }] as const;
    const options = { link: { pools, check: async () => {} }, shares, timeoutMs: 1000, fallback };
    const turns: Turn[] = [
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Be kind.' },
    ];
    const asked = (isStrict: boolean) =>
      command({ unfitFor: unfitProviders({ turns }, { isStrict }), isStrict });
    expect(await admit(asked(false), options)).toMatchObject({ fallback });
    expect(await admit(asked(true), options)).toMatchObject({ fallback: [fallback[0]] });
  });

  it('asks each model once, whether it is meant by its name or as the one by default', async () => {
    for (const provider of ['openai', 'anthropic'] as const) beat(provider);
    const [self, anthropic] = [{ provider: 'openai', model: 'm' }, { provider: 'anthropic' }] as const;
    expect(await ask(self)).toEqual(self);
    const all = [{ provider: 'openai' }, anthropic, { ...anthropic, model: 'm' }, anthropic] as const;
    expect(await ask(...all)).toEqual({ ...self, fallback: [anthropic] });
    const another = { provider: 'openai', model: 'another' } as const;
    expect(await ask(self, another)).toEqual({ ...self, fallback: [another] });
  });

  it('passes over a provider that operators have paused, but for a chat that nobody else would do', async () => {
    beat('openai', { state: 'paused', pausedBy: 'operator' });
    const openai = { provider: 'openai', model: 'm' } as const;
    const anthropic = { provider: 'anthropic' } as const;
    expect(await ask()).toEqual(openai);
    expect(await ask(anthropic)).toEqual(openai);
    beat('anthropic');
    const passedOver = { ...openai, code: 'provider_unavailable', retryable: true };
    expect(await ask(anthropic)).toEqual({ ...anthropic, earlier: [expect.objectContaining(passedOver)] });
    beat('anthropic', { state: 'paused', pausedBy: 'operator' });
    expect(await ask(anthropic)).toEqual(openai);
  });

  it('fails as the provider does when nobody would', async () => {
    beat('openai', { inFlight: 2, waiting: 100 });
    await expect(ask({ provider: 'anthropic' })).rejects.toMatchObject({
      code: 'overloaded',
      facts: { provider: 'openai' },
    });
  });

  it('asks nobody else when the request is what is wrong', async () => {
    beat('openai', { models: [], defaultModel: 'another' });
    beat('anthropic');
    await expect(ask({ provider: 'anthropic' })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe('admit', () => {
  const pools = new LivePools(new Heartbeats({ since: Number.NEGATIVE_INFINITY }));
  const ask = (check: () => Promise<void>, timeoutMs = 1000) =>
    admit(command(), { link: { pools, check }, shares, timeoutMs });

  it('says that no worker serves the provider', async () => {
    await expect(ask(async () => {})).rejects.toMatchObject({ code: 'provider_unavailable' });
  });

  it('says that it is the store that is down, also when that does not answer', async () => {
    const down = { code: 'queue_unavailable' };
    await expect(ask(() => Promise.reject(new Failure('queue_unavailable')))).rejects.toMatchObject(down);
    await expect(ask(() => Promise.reject(new Error('x')))).rejects.toMatchObject(down);
    await expect(ask(() => new Promise(() => {}), 1)).rejects.toMatchObject(down);
  });
});
