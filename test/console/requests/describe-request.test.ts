import { describe, expect, it } from 'vitest';
import { describeTokens } from '../../../console/parts/format.ts';
import { describeResult, phasesOf } from '../../../console/requests/describe-request.ts';
import { ledgerCall, ledgerRequest } from '../ledger-request.ts';

describe('describeResult', () => {
  it.each([
    ['Answered by OpenAI gpt.', {}],
    ['Answered by OpenAI gpt; the reply was cut at its token limit.', { result: 'truncated' }],
    ['The reply was withheld at OpenAI gpt.', { result: 'blocked' }],
    [
      'Cancelled, or left by its caller.',
      { result: 'cancelled', answeredProvider: null, answeredModel: null },
    ],
    [
      'Failed at OpenAI gpt: HTTP 400 invalid at tools.0.',
      { result: 'provider_rejected', error: { status: 400, type: 'invalid', place: 'tools.0' } },
    ],
    ['Failed.', { result: 'overloaded', answeredProvider: null, answeredModel: null }],
  ] as const)('is the sentence "%s"', (sentence, own) => {
    expect(describeResult(ledgerRequest(own))).toBe(sentence);
  });
});

describe('phasesOf', () => {
  it('is as long as the request took, and parts the last call at its first token', () => {
    const phases = phasesOf(ledgerRequest(), [ledgerCall(400), ledgerCall(2400)]);
    expect(phases).toEqual({ waited: 300, called: 1300, writing: 1500, other: 100 });
  });

  it('has no other part where nothing was called', () => {
    const refused = ledgerRequest({ waitedMs: null, calledMs: null, firstTokenMs: null, totalMs: 5 });
    expect(phasesOf(refused, [])).toEqual({ waited: 0, called: 0, writing: 0, other: 5 });
  });
});

describe('describeTokens', () => {
  it('says of both sides what is a part of them, and leaves out what is none', () => {
    const { tokens } = ledgerRequest();
    expect(describeTokens(tokens)).toBe('1,200 in (1,000 cached), 30 out (12 thinking)');
    expect(describeTokens({ ...tokens, cached: 0, thinking: 0 })).toBe('1,200 in, 30 out');
  });
});
