import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const fault = (model: string, code: FailureCode, retryAfterMs?: number) => ({ model, code, retryAfterMs });

const failures = [
  ...[400, 404].map((status) => fault(`sim-status-${status}`, 'provider_rejected')),
  ...[408, 500, 529].map((status) => fault(`sim-status-${status}`, 'provider_error')),
  fault('sim-unknown', 'provider_rejected'),
  fault('sim-status-429', 'provider_rate_limited'),
  fault('sim-retry-after-1', 'provider_rate_limited', 1000),
  fault('sim-retry-after-3600', 'provider_rate_limited', 3_600_000),
  fault('sim-context-1', 'context_length_exceeded'),
  ...['not-ready', 'reset', 'reset-body', 'truncated', 'html', 'garbage', 'stream-error'].map((behaviour) =>
    fault(`sim-${behaviour}`, 'provider_error'),
  ),
];

describe.each(providerSetups)('$name', async ({ load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());

  describe.each(replyModes)('$mode', ({ stream }) => {
    it.each(failures)('calls once and takes $model for $code', async ({ model, code, retryAfterMs }) => {
      const since = simulator.calls.lastId;
      const failure = await failureOf(ask(provider, { model, stream }));
      expect(failure.code).toBe(code);
      expect(failure.retryable).toBe(!['provider_rejected', 'context_length_exceeded'].includes(code));
      expect(failure.facts.retryAfterMs).toBe(retryAfterMs);
      expect(simulator.calls.list({ since })).toHaveLength(1);
    });

    it.each(['sim-null', 'sim-empty'])(
      'takes %s for a provider_error, retryable only if a stream broke off',
      async (model) => {
        const failure = await failureOf(ask(provider, { model, stream }));
        expect(failure.code).toBe('provider_error');
        if (!stream || model === 'sim-null') expect(failure.retryable).toBe(false);
      },
    );

    it('keeps what the provider says out of the failure', async () => {
      const failure = await failureOf(ask(provider, { model: 'sim-status-401', stream }));
      const { cause, stack, facts } = failure;
      const everything = JSON.stringify([failure, facts.cause, String(stack), String(cause)]);
      expect(everything).not.toMatch(/credential|test-key|127\.0\.0\.1:|Hello/i);
    });

    it('keeps the text of a reply cut at the token limit', async () => {
      const { text, ...reply } = await ask(provider, { model: 'sim-length', stream });
      expect(text).toMatch(/^Simulated/);
      expect(reply).toMatchObject({ reason: 'length', model: 'sim-length', usage: expect.anything() });
    });

    it('has no usage where the provider says nothing of it', async () => {
      expect(await ask(provider, { model: 'sim-no-usage', stream })).not.toHaveProperty('usage');
    });

    it.each(['sim-blocked', 'sim-refused', 'sim-blocked-reply'])('takes %s for blocked', async (model) => {
      expect(await ask(provider, { model, stream })).toMatchObject({ reason: 'blocked' });
    });
  });

  it('gives a stream piece by piece', async () => {
    const { deltas } = await ask(provider, { model: 'sim-stream-5-0', stream: true });
    expect(deltas).toHaveLength(5);
  });

  it.each(['sim-cut-3', 'sim-unfinished-3', 'sim-malformed-3', 'sim-stream-error-3'])(
    'gives the pieces that came before %s went wrong',
    async (model) => {
      const pieces: string[] = [];
      const onDelta = (text: string) => pieces.push(text);
      const failure = await failureOf(ask(provider, { model, stream: true, onDelta }));
      expect(failure).toMatchObject({ code: 'provider_error', retryable: true });
      expect(pieces).toEqual(['1', ' 2', ' 3']);
    },
  );

  it('takes a piece of a megabyte', async () => {
    const { text } = await ask(provider, { model: 'sim-deltas-1-1000000', stream: true });
    expect(text).toHaveLength(1_000_000);
  });
});

describe('a provider that cannot be reached', () => {
  it.each(providerSetups)('is a provider_error: $name', async ({ load }) => {
    const gone = await startSimulator({ port: 0 });
    await gone.close();
    const provider = await load(gone.url);
    const failure = await failureOf(ask(provider, { model: 'sim-echo', stream: false }));
    expect([failure.code, failure.retryable]).toEqual(['provider_error', true]);
    provider.close();
  });
});

async function failureOf(reply: Promise<unknown>): Promise<Failure> {
  const outcome = await reply.catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(Failure);
  return outcome as Failure;
}
