import { describe, expect, it } from 'vitest';
import { outcomeToFailure, statusOf, toCompletion } from '../../../api/chat/chat-result.js';
import type { JobResult } from '../../../api/fleet-link/chat-receiver.js';
import { decodeOutcome, encodeOutcome } from '../../../shared/protocol/outcome.js';

const deadline = 100_000;

describe('statusOf', () => {
  it.each([
    ['queued', -1, 'queued'],
    ['queued', 0, 'expired'],
    ['unknown', -1, 'queued'],
    ['unknown', 0, 'expired'],
    ['running', -1, 'running'],
    ['running', 9999, 'running'],
    // No worker that is alive takes longer to write down how it ended.
    ['running', 10_000, 'expired'],
  ] as const)('says of a job that is %s, %d ms past the deadline, that it is %s', (state, late, status) => {
    expect(statusOf({ state }, { deadline, now: deadline + late })).toBe(status);
  });
});

describe('toCompletion', () => {
  it.each<[JobResult, true | undefined]>([
    [{ state: 'queued' }, true],
    [{ state: 'queued', wasTaken: true }, undefined],
    [{ state: 'running' }, undefined],
    [{ state: 'unknown' }, undefined],
  ])('says of %j at the deadline whether no provider was called', (result, neverCalled) => {
    expect(() => toCompletion(result, 'openai')).toThrow(
      expect.objectContaining({
        code: 'timeout',
        facts: { provider: 'openai', ...(neverCalled && { neverCalled }) },
      }),
    );
  });
});

describe('outcomeToFailure', () => {
  it('keeps what a worker knows of the failure', () => {
    const times = { queueMs: 0, providerMs: 0 };
    const { code, retryable, facts } = outcomeToFailure(
      {
        ...{ kind: 'failed', code: 'provider_rejected', retryable: true },
        ...{ retryAfterMs: 5, credentialsRefused: true, refusedParameter: 'toolChoice', ...times },
      },
      'openai',
    );
    expect([code, retryable, facts]).toEqual([
      'provider_rejected',
      true,
      {
        ...{ provider: 'openai', retryable: true, retryAfterMs: 5, credentialsRefused: true },
        refusedParameter: 'toolChoice',
      },
    ]);
  });

  it.each([
    ['tools.0.name', 'tools.0.name', 'The provider refused a part of the request: tools.0.name.'],
    ['not; a place', undefined, undefined],
    [undefined, undefined, undefined],
  ])('names the place %s that the provider refused, and no other text', (place, refusedParameter, detail) => {
    const failed = {
      ...({
        kind: 'failed',
        code: 'provider_rejected',
        retryable: false,
        queueMs: 0,
        providerMs: 0,
      } as const),
      providerError: { status: 400, type: 'invalid_request_error', ...(place && { place }) },
    };
    const outcome = decodeOutcome(encodeOutcome(failed)) as typeof failed;
    expect(outcome.providerError).toMatchObject({ status: 400, type: 'invalid_request_error' });
    const { facts } = outcomeToFailure(outcome, 'openai');
    expect([facts.refusedParameter, facts.detail]).toEqual([refusedParameter, detail]);
  });

  it('names the change that a strict chat would need, and the provider', () => {
    const failed = { kind: 'failed', code: 'provider_rejected', retryable: false } as const;
    const providerError = { status: 400, type: 'invalid_request_error', place: 'messages.2' };
    const facts = { refusedParameter: 'messages', providerError, queueMs: 0, providerMs: 0 };
    const { detail } = outcomeToFailure({ ...failed, ...facts }, 'anthropic').facts;
    expect(detail).toMatch(/ of anthropic takes no system text after other messages; .* \(marked-system\)/);
  });

  const refused = {
    kind: 'failed',
    code: 'provider_unavailable',
    retryable: true,
    retryAfterMs: 7100,
    queueMs: 0,
    providerMs: 0,
  } as const;
  const unavailable = { provider: 'openai', code: 'provider_unavailable', model: 'm' } as const;

  it.each<[string, Parameters<typeof outcomeToFailure>[0]]>([
    ['by a worker', { ...refused, failingModel: 'm' }],
    ['at its first attempt', { ...refused, attempts: [unavailable] }],
  ])('names the model whose breaker refused the chat, %s', (_, outcome) => {
    expect(outcomeToFailure(outcome, 'openai').facts).toMatchObject({
      detail: 'openai/m is failing; the next try is in 8 s.',
      retryAfterMs: 7100,
    });
  });

  it.each([
    ['provider_rejected', { status: 404, type: 'NotFoundError' }, true],
    ['provider_rejected', { type: 'not_found_error' }, true],
    ['provider_rejected', { status: 400, type: 'invalid_request_error' }, undefined],
    ['provider_error', { status: 404, type: 'UnusableAnswer' }, undefined],
    ['provider_rejected', undefined, undefined],
  ] as const)('knows of a %s with %j whether the model is unknown', (code, providerError, expected) => {
    const times = { queueMs: 0, providerMs: 0 };
    const outcome = { kind: 'failed', code, retryable: false, providerError, ...times } as const;
    expect(outcomeToFailure(outcome, 'openai').facts.modelUnknown).toBe(expected);
  });
});
