import { describe, expect, it } from 'vitest';
import { outcomeToFailure } from '../../../api/chat/chat-result.js';
import { toProblem } from '../../../api/http/problem.js';
import { Failure } from '../../../shared/failures.js';
import type { EndedAttempt } from '../../../shared/protocol/attempts.js';
import type { ChatJob } from '../../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { conclude, toEndedAttempt, toFailedOutcome, toOutcome } from '../../../workers/job/outcomes.js';
import { classifyError, refusedAnswer } from '../../../workers/providers/errors/error-classification.js';

const times = (queueMs: number, providerMs: number) => ({ queueMs, providerMs });
const limited: EndedAttempt = {
  ...{ provider: 'openai', code: 'provider_rate_limited', retryable: true, retryAfterMs: 9000 },
  ...times(1, 10),
};
const rejected: EndedAttempt = {
  ...{ provider: 'bedrock', code: 'provider_rejected', retryable: false },
  ...times(2, 20),
};
const rejectedOutcome = {
  kind: 'failed',
  code: 'provider_rejected',
  retryable: false,
  ...times(2, 20),
} as const;
/** Refused before it was queued. */
const unavailable: EndedAttempt = { provider: 'vertexai', code: 'provider_unavailable', retryable: true };
const job: ChatJob = { v: 1, provider: 'anthropic', turns: [], deadline: 0, replyTo: 'api', user: 'me' };

describe('an error of a provider', () => {
  it('is refused -> its status, its type and the parameter that it refuses, and no text', () => {
    const error = Object.assign(new Error('a text'), { name: 'BadRequestError' });
    const facts = { status: 400, words: ['invalid_request_error'], param: 'tool_choice' };
    const outcome = toFailedOutcome(classifyError(error, facts), times(1, 2));
    const providerError = { status: 400, type: 'invalid_request_error' };
    const refused = { code: 'provider_rejected', refusedParameter: 'toolChoice' };
    expect(outcome).toMatchObject({ ...refused, providerError });
    expect(decodeOutcome(encodeOutcome(outcome))).toEqual(outcome);
    expect(toEndedAttempt(outcome, job)).toMatchObject({ providerError });
    expect(JSON.stringify(outcome)).not.toContain('a text');
    const own = toFailedOutcome(new Failure('invalid_request', { refusedParameter: 'images' }), times(1, 2));
    expect(own).toMatchObject({ refusedParameter: 'images', providerError: undefined });
  });

  it('is about a later system text -> the field of the caller that has it', () => {
    const text = "role 'system' is not supported on this model";
    const outcome = toFailedOutcome(classifyError(new Error('x'), { status: 400, text }), times(1, 2));
    expect(outcome).toMatchObject({ code: 'provider_rejected', refusedParameter: 'messages' });
  });

  it('is about a conversation that is too long -> the limit that it names reaches the caller, and no text', () => {
    const text = 'prompt is too long: 213462 tokens > 200000 maximum';
    const failure = classifyError(new Error('x'), { status: 400, text });
    const outcome = decodeOutcome(encodeOutcome(toFailedOutcome(failure, times(1, 2))));
    if (outcome.kind !== 'failed') throw new TypeError('not a failure');
    const { code, facts } = outcomeToFailure(outcome, 'anthropic');
    const sizes = { contextTokens: 200_000, askedTokens: { inputTokens: 213_462 } };
    expect([code, facts]).toEqual(['context_length_exceeded', expect.objectContaining(sizes)]);
    const attempts = [toEndedAttempt(outcome, job), rejected];
    expect(conclude({ ...outcome, contextTokens: 4 }, attempts)).toMatchObject({
      code,
      ...sizes,
    });
    expect(facts.detail).toMatch(/maximum context length is 200000 tokens \(context_length_exceeded\)/);
    expect(facts.detail).not.toContain('213462');
  });

  it.each([
    [{ ms: 60_000, setting: 'timeoutMs' }, /^The provider did not answer within 60 s\. /],
    [{ ms: 1500, setting: 'idleTimeoutMs', fellSilent: true }, /^The provider sent nothing for 1\.5 s\. /],
    // A worker of 0.9.1 names no limit.
    [undefined, /^The provider did not answer in time, or fell silent\. /],
  ] as const)(
    'is a time-out by %j -> its caller is told the limit, and no name of a variable',
    (limit, text) => {
      const failure = new Failure('provider_timeout', { limit });
      const written = encodeOutcome(toFailedOutcome(failure, times(1, 2)));
      const outcome = decodeOutcome(written);
      if (outcome.kind !== 'failed') throw new TypeError('not a failure');
      const ofAll = conclude(outcome, [toEndedAttempt(outcome, job), rejected]);
      for (const each of [outcome, ofAll] as (typeof outcome)[]) {
        const { detail } = toProblem(outcomeToFailure(each, 'anthropic'), 'id');
        expect(detail).toMatch(text);
      }
      expect(written).not.toMatch(/_MS|setting/);
    },
  );
});

describe('a reply that a provider has withheld', () => {
  const usage = { inputTokens: 15, outputTokens: 1 };
  const behindText = { text: 'a', reason: 'blocked', model: 'm', usage } as const;
  const refused = toFailedOutcome(refusedAnswer('cyber', usage), times(1, 2));
  const ended: EndedAttempt = toEndedAttempt(refused, job);

  it.each<[string, Outcome, string | undefined]>([
    ['before any text', refused, 'cyber'],
    ['behind text', toOutcome({ ...behindText, refusal: 'bio' }, times(1, 2)), 'bio'],
    ['by another filter', toOutcome(behindText, times(1, 2)), undefined],
  ])('%s -> its category and its tokens reach the API', (_, outcome, refusal) => {
    const heard = decodeOutcome(encodeOutcome(outcome));
    if (heard.kind !== 'failed' && heard.kind !== 'blocked') throw new TypeError('no failure');
    expect(outcomeToFailure(heard, 'anthropic')).toMatchObject({
      code: 'content_blocked',
      facts: { refusal, usage },
    });
  });

  it('before any text, and then a failure -> the category of the first', () => {
    const outcome = conclude(rejectedOutcome, [ended, rejected]);
    if (outcome.kind !== 'failed') throw new TypeError('no failure');
    expect(outcomeToFailure(outcome, 'anthropic').facts.refusal).toBe('cyber');
    expect(outcomeToFailure(rejectedOutcome, 'anthropic').facts.refusal).toBeUndefined();
  });
});

describe('the outcome of a chat', () => {
  it('of one attempt -> that of the attempt', () => {
    expect(conclude(rejectedOutcome, [rejected])).toBe(rejectedOutcome);
  });

  it('that is answered by the last -> what all attempts took and cost', () => {
    const usage = { inputTokens: 1, outputTokens: 2 };
    const own: Outcome = { kind: 'ok', text: 'Hi', model: 'm', usage, ...times(3, 30) };
    const last: EndedAttempt = { provider: 'anthropic', code: 'ok', usage, ...times(3, 30) };
    const attempts = [unavailable, limited, last];
    expect(conclude(own, attempts)).toEqual({ ...own, ...times(4, 40), attempts });
  });

  it('whose attempts all fail -> the failure of the first, to be repeated if one of them may be', () => {
    const { provider: _, ...first } = limited;
    const attempts = [limited, rejected];
    expect(conclude(rejectedOutcome, attempts)).toEqual({
      kind: 'failed',
      ...first,
      ...times(3, 30),
      attempts,
    });
    const hopeless = { code: 'provider_rejected', retryable: false };
    expect(conclude(rejectedOutcome, [rejected, rejected])).toMatchObject(hopeless);
  });

  it('whose last attempt the deadline has ended -> the deadline, as the waiting caller heard', () => {
    const late = { code: 'timeout', retryable: true, ...times(2, 20) } as const;
    const attempts: EndedAttempt[] = [limited, { provider: 'bedrock', ...late }];
    const own: Outcome = { kind: 'failed', ...late };
    expect(conclude(own, attempts)).toEqual({ ...own, ...times(3, 30), attempts });
  });

  it('that is blocked or cancelled in the end -> that', () => {
    const blocked = conclude({ kind: 'blocked', ...times(0, 0) }, [limited, rejected]);
    expect(blocked).toMatchObject({ kind: 'blocked' });
    const cancelled: Outcome = { kind: 'cancelled', ...times(0, 0) };
    expect(conclude(cancelled, [limited, rejected])).toBe(cancelled);
  });
});
