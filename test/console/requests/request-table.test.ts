import { describe, expect, it } from 'vitest';
import { describeTargets } from '../../../console/requests/request-table.tsx';
import { ledgerRequest } from '../ledger-request.ts';

describe('describeTargets', () => {
  it.each([
    ['OpenAI gpt', {}],
    ['OpenAI gpt', { answeredProvider: null, answeredModel: null }],
    ['OpenAI gpt → gpt-2026', { answeredModel: 'gpt-2026' }],
    ['OpenAI → gpt', { model: null }],
    ['OpenAI gpt → Anthropic claude', { answeredProvider: 'anthropic', answeredModel: 'claude' }],
  ] as const)('is %s, without what is said twice', (text, own) => {
    expect(describeTargets(ledgerRequest(own))).toBe(text);
  });
});
