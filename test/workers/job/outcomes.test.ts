import { describe, expect, it } from 'vitest';
import { outcomeToFailure } from '../../../api/chat/chat-result.js';
import { Failure } from '../../../shared/failures.js';
import type { EndedAttempt } from '../../../shared/protocol/attempts.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { conclude, toEndedAttempt, toFailedOutcome } from '../../../workers/job/outcomes.js';
import { classifyError } from '../../../workers/providers/error-classification.js';

const times = (queueMs: number, providerMs: number) => ({ queueMs, providerMs });
const limited: EndedAttempt = {
  ...{ provider: 'openai', code: 'provider_rate_limited', retryable: true, retryAfterMs: 9000 },
  ...times(1, 10),
};
const rejected: EndedAttempt = {
  provider: 'bedrock',
  code: 'provider_rejected',
  retryable: false,
  ...times(2, 20),
};
/** Refused before it was queued. */
const unavailable: EndedAttempt = { provider: 'vertexai', code: 'provider_unavailable', retryable: true };

describe('toFailedOutcome', () => {
  it("says the provider's status, the type of its error and the parameter that it refuses, and no text", () => {
    const error = Object.assign(new Error('a text'), { name: 'BadRequestError' });
    const facts = { status: 400, words: ['invalid_request_error'], param: 'tool_choice' };
    const outcome = toFailedOutcome(classifyError(error, facts), times(1, 2));
    const providerError = { status: 400, type: 'invalid_request_error' };
    const refused = { code: 'provider_rejected', refusedParameter: 'toolChoice' };
    expect(outcome).toMatchObject({ ...refused, providerError });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
    const job = { v: 1, provider: 'openai', turns: [], deadline: 0, replyTo: 'api', user: 'me' } as const;
    expect(toEndedAttempt(outcome, { ...job, turns: [] })).toMatchObject({ providerError });
    expect(JSON.stringify(outcome)).not.toContain('a text');
    expect(toFailedOutcome(new Failure('timeout'), times(1, 2))).toHaveProperty('providerError', undefined);
  });
});

describe('a conversation that is too long', () => {
  it('whose limit the provider names -> the number reaches the caller, and no text', () => {
    const text = 'prompt is too long: 213462 tokens > 200000 maximum';
    const failure = classifyError(new Error('x'), { status: 400, text });
    const outcome = decodeOutcome(encodeOutcome(toFailedOutcome(failure, times(1, 2))));
    if (outcome.kind !== 'failed') throw new TypeError('not a failure');
    const { code, facts } = outcomeToFailure(outcome, 'anthropic');
    expect(code).toBe('context_length_exceeded');
    const job = { v: 1, provider: 'anthropic', turns: [], deadline: 0, replyTo: 'api', user: 'me' } as const;
    const failedToo = conclude({ ...outcome, contextTokens: 4 }, [
      toEndedAttempt(outcome, { ...job, turns: [] }),
      rejected,
    ]);
    expect(failedToo).toMatchObject({ code, contextTokens: 200_000 });
    expect(facts.detail).toMatch(/maximum context length is 200000 tokens \(context_length_exceeded\)/);
    expect(facts.detail).not.toContain('213462');
  });
});

describe('conclude', () => {
  it('leaves the outcome of the only attempt alone', () => {
    const own: Outcome = { kind: 'failed', code: 'provider_rejected', retryable: false, ...times(2, 20) };
    expect(conclude(own, [rejected])).toBe(own);
  });

  it('lists what a reply took and cost in all', () => {
    const usage = { inputTokens: 1, outputTokens: 2 };
    const own: Outcome = { kind: 'ok', text: 'Hi', model: 'm', usage, ...times(3, 30) };
    const last: EndedAttempt = { provider: 'anthropic', code: 'ok', usage, ...times(3, 30) };
    const attempts = [unavailable, limited, last];
    expect(conclude(own, attempts)).toEqual({ ...own, ...times(4, 40), attempts });
  });

  it('fails as the first attempt did, and is worth another try if one of them is', () => {
    const own: Outcome = { kind: 'failed', code: 'provider_rejected', retryable: false, ...times(2, 20) };
    expect(conclude(own, [limited, rejected])).toEqual({
      ...{ kind: 'failed', code: 'provider_rate_limited', retryable: true, retryAfterMs: 9000 },
      ...times(3, 30),
      attempts: [limited, rejected],
    });
    expect(conclude(own, [rejected, rejected])).toMatchObject({
      code: 'provider_rejected',
      retryable: false,
    });
  });

  it('ends with the deadline when that has ended the last attempt, as the waiting caller heard', () => {
    const own: Outcome = { kind: 'failed', code: 'timeout', retryable: true, ...times(2, 20) };
    const late: EndedAttempt = { provider: 'bedrock', code: 'timeout', retryable: true, ...times(2, 20) };
    const attempts = [limited, late];
    expect(conclude(own, attempts)).toEqual({ ...own, ...times(3, 30), attempts });
  });

  it('keeps blocked content and cancelled chats what they are', () => {
    expect(conclude({ kind: 'blocked', ...times(0, 0) }, [limited, rejected])).toMatchObject({
      kind: 'blocked',
    });
    const cancelled: Outcome = { kind: 'cancelled', ...times(0, 0) };
    expect(conclude(cancelled, [limited, rejected])).toBe(cancelled);
  });
});
