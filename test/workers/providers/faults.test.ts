import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const reason = new Error('the deadline passed');

const failures: [model: string, FailureCode, retryAfterMs?: number][] = [
  ['sim-status-404', 'provider_rejected'],
  ['sim-status-500', 'provider_error'],
  ['sim-status-429', 'provider_rate_limited'],
  ['sim-retry-after-3600', 'provider_rate_limited', 3_600_000],
  ['sim-context-1', 'context_length_exceeded'],
  ['sim-unknown', 'provider_rejected'],
  ['sim-not-ready', 'provider_error'],
  ['sim-reset', 'provider_error'],
  ['sim-reset-body', 'provider_error'],
  ['sim-truncated', 'provider_error'],
  ['sim-html', 'provider_error'],
  ['sim-garbage', 'provider_error'],
  ['sim-stream-error', 'provider_error'],
];

const spent = { code: 'provider_error', retryable: false };
const limited = { code: 'provider_rate_limited', retryable: true };
/** The failures for each provider's errors of spent credit or a spent quota: of the account for certain, or maybe. */
const quotas: Record<ProviderId, object[]> = {
  openai: [
    ...Array(6).fill({ ...spent, cause: { isOutOfCredit: true } }),
    { ...spent, cause: { isOutOfCredit: false, seemsOutOfCredit: true } },
  ],
  anthropic: [
    ...Array(5).fill({ ...spent, cause: { isOutOfCredit: true } }),
    ...Array(3).fill({ ...spent, cause: { isOutOfCredit: false, seemsOutOfCredit: true } }),
  ],
  bedrock: [limited],
  vertexai: [
    { code: limited.code, retryable: false, facts: { retryAfterMs: 300_000 } },
    { ...limited, facts: { retryAfterMs: 36_000 } },
    { ...limited, facts: { retryAfterMs: 21_000 } },
  ],
};

describe.each(providerSetups)('$name', async ({ name, id, load }) => {
  const provider = await load(simulator.url);
  const bounded = await load(simulator.url, 16_384);
  afterAll(() => {
    provider.close();
    bounded.close();
  });

  /** A model that no other call asks for. */
  const modelOf = (behaviour: string, mode = '') => `${behaviour}@${name}-${mode}`.replaceAll(' ', '-');

  /** The only call of a model, once it has ended. */
  async function endedCallOf(model: string) {
    const call = await simulator.calls.waitFor((recorded) => recorded.model === model);
    await call.closed;
    expect(simulator.calls.list().filter((recorded) => recorded.model === model)).toHaveLength(1);
    return call;
  }

  describe.each(replyModes)('$mode', ({ mode, stream }) => {
    it.each(failures)('%s -> is called once, and fails with %s', async (behaviour, code, retryAfterMs) => {
      const model = modelOf(behaviour, `failing-${mode}`);
      const failure = await failureOf(ask(provider, { model, stream }));
      expect(failure.code).toBe(code);
      expect(failure.retryable).toBe(!['provider_rejected', 'context_length_exceeded'].includes(code));
      expect(failure.facts.retryAfterMs).toBe(retryAfterMs);
      await endedCallOf(model);
    });

    it.each([...quotas[id].entries()])(
      'error %i for spent credit or a spent quota -> %j, and no word of the request is said to be wrong',
      async (place, means) => {
        const failure = await failureOf(ask(provider, { model: `sim-quota-${place + 1}`, stream }));
        expect(failure).toMatchObject(means);
      },
    );

    it.each(['sim-null', 'sim-empty'])(
      '%s -> is a provider_error, retryable only if a stream broke off',
      async (model) => {
        const failure = await failureOf(ask(provider, { model, stream }));
        expect(failure.code).toBe('provider_error');
        if (!stream || model === 'sim-null') expect(failure.retryable).toBe(false);
      },
    );

    it('a provider that says more -> its words stay out of the failure', async () => {
      const failure = await failureOf(ask(provider, { model: 'sim-status-401', stream }));
      const { cause, stack, facts } = failure;
      const everything = JSON.stringify([failure, facts.cause, String(stack), String(cause)]);
      expect(everything).not.toMatch(/credential|test-key|127\.0\.0\.1:|Hello/i);
    });

    it('a reply cut at the token limit -> keeps its text', async () => {
      const { text, ...reply } = await ask(provider, { model: 'sim-length', stream });
      expect(text).toMatch(/^Simulated/);
      expect(reply).toMatchObject({ reason: 'length', model: 'sim-length', usage: expect.anything() });
    });

    it('no word of the usage -> there is none', async () => {
      expect(await ask(provider, { model: 'sim-no-usage', stream })).not.toHaveProperty('usage');
    });

    it.each(['sim-blocked', 'sim-refused', 'sim-blocked-reply'])('%s -> is blocked', async (model) => {
      // What a classifier refuses before any text is a failure, so that a fallback is asked.
      const isRefused = name === 'anthropic' && model !== 'sim-blocked-reply';
      const blocked = isRefused ? { code: 'content_blocked' } : { reason: 'blocked' };
      expect(await ask(provider, { model, stream }).catch((error) => error)).toMatchObject(blocked);
    });

    it.each(['sim-endless', 'sim-endless-429'])(
      'an answer of %s that has no end -> ended at the limit, with its connection, and not asked for again',
      async (behaviour) => {
        const model = modelOf(behaviour, mode);
        const tooLarge = { code: 'provider_error', retryable: false, cause: { word: 'oversized' } };
        expect(await failureOf(ask(bounded, { model, stream }))).toMatchObject(tooLarge);
        expect(await endedCallOf(model)).toMatchObject({ clientClosedFirst: true });
      },
    );

    it.each(['sim-hang', 'sim-hang-body', 'sim-drip-50'])(
      'an abort in the middle of %s -> closes the socket',
      async (behaviour) => {
        const model = modelOf(behaviour, mode);
        const controller = new AbortController();
        const begun = behaviour === 'sim-hang' ? undefined : headersReceived();
        const reply = ask(provider, { model, stream, signal: controller.signal });
        const ended = expect(reply).rejects.toBe(reason);
        await begun;
        await simulator.calls.waitFor((recorded) => recorded.model === model);
        controller.abort(reason);
        await ended;
        expect(await endedCallOf(model)).toMatchObject({ clientClosedFirst: true });
      },
    );

    it('a signal that is already aborted -> makes no call', async () => {
      const since = simulator.calls.lastId;
      const signal = AbortSignal.abort(reason);
      await expect(ask(provider, { model: 'sim-echo', stream, signal })).rejects.toBe(reason);
      expect(simulator.calls.list({ since })).toEqual([]);
    });
  });

  it('an abort between two deltas -> ends with the reason, and closes the socket', async () => {
    const model = modelOf('sim-stream-1000-10');
    const controller = new AbortController();
    const { signal } = controller;
    const deltas: string[] = [];
    const onDelta = (text: string) => {
      deltas.push(text);
      controller.abort(reason);
    };
    await expect(ask(provider, { model, stream: true, signal, onDelta })).rejects.toBe(reason);
    expect(deltas).toHaveLength(1);
    expect(await endedCallOf(model)).toMatchObject({ clientClosedFirst: true });
  });

  it('each event of a stream -> is activity, in time for its text', async () => {
    let active = 0;
    const activeAt: number[] = [];
    const { deltas } = await ask(provider, {
      // The pause has the events come one by one.
      model: 'sim-stream-5-5',
      stream: true,
      onLife: () => (active += 1),
      onDelta: () => activeAt.push(active),
    });
    expect(deltas).toHaveLength(5);
    for (const [n, count] of activeAt.entries()) expect(count).toBeGreaterThan(activeAt[n - 1] ?? 0);
  });

  it('a whole reply that is asked for as a stream -> is whole, and shows life as it is written', async () => {
    let lives = 0;
    const asked = { model: 'sim-stream-5-5', stream: false, isStreamed: true };
    const { text } = await ask(provider, { ...asked, onLife: () => (lives += 1) });
    expect(text).toBe('1 2 3 4 5');
    expect(lives).toBeGreaterThanOrEqual(5);
  });

  it('a stream that is asked for as a whole reply -> is one piece', async () => {
    const asked = { model: 'sim-stream-5-5', stream: true, isStreamed: false };
    expect((await ask(provider, asked)).deltas).toEqual(['1 2 3 4 5']);
  });

  it.each(['sim-cut-3', 'sim-unfinished-3', 'sim-malformed-3', 'sim-stream-error-3'])(
    'pieces, and then %s -> the pieces are given, and then the failure',
    async (model) => {
      const pieces: string[] = [];
      const onDelta = (text: string) => pieces.push(text);
      const failure = await failureOf(ask(provider, { model, stream: true, onDelta }));
      expect(failure).toMatchObject({ code: 'provider_error', retryable: true });
      expect(pieces).toEqual(['1', ' 2', ' 3']);
    },
  );

  it('a stream of small events, longer than an event may be -> is given', async () => {
    // The last event of Responses has all of the text.
    const tight = await load(simulator.url, 300_000);
    const { text } = await ask(tight, { model: 'sim-deltas-2000-100', stream: true });
    expect(text).toHaveLength(200_000);
    tight.close();
  });

  it('a reply of five million characters -> ended, and not asked for again', async () => {
    const failure = await failureOf(ask(provider, { model: 'sim-deltas-5-1000000', stream: true }));
    expect(failure).toMatchObject({ retryable: false, cause: { word: 'oversized' } });
  });

  it('a piece of a megabyte -> is given', async () => {
    const { text } = await ask(provider, { model: 'sim-deltas-1-1000000', stream: true });
    expect(text).toHaveLength(1_000_000);
  });

  it('a provider that cannot be reached -> is a provider_error', async () => {
    const gone = await startSimulator({ port: 0 });
    await gone.close();
    const unreachable = await load(gone.url);
    const failure = await failureOf(ask(unreachable, { model: 'sim-echo', stream: false }));
    expect([failure.code, failure.retryable]).toEqual(['provider_error', true]);
    unreachable.close();
  });
});

async function failureOf(reply: Promise<unknown>): Promise<Failure> {
  const outcome = await reply.catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(Failure);
  return outcome as Failure;
}

/** Settles when the next answer's headers have arrived in this process, through fetch or through `node:http`. */
function headersReceived(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const channels = ['undici:request:headers', 'http.client.response.finish'];
  const settle = () => {
    for (const channel of channels) unsubscribe(channel, settle);
    resolve();
  };
  for (const channel of channels) subscribe(channel, settle);
  return promise;
}
