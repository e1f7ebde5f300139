import { describe, expect, it } from 'vitest';
import { targetsOf } from '../../../console/requests/request-table.tsx';
import type { RequestAttempt } from '../../../shared/contracts/history.ts';
import { recentRequest } from '../../support/history.js';

const first: RequestAttempt = { provider: 'openai', model: 'gpt', code: 'provider_error' };
const last: RequestAttempt = { provider: 'anthropic', model: 'claude', code: 'ok' };

describe('targetsOf', () => {
  it('is whom the request names where there was one attempt', () => {
    expect(targetsOf(recentRequest({ provider: 'openai', model: 'gpt-5' }))).toEqual({
      asked: { provider: 'openai', model: 'gpt-5' },
    });
  });

  it('is who was asked and who answered, after a fallback', () => {
    const attempts = [first, last];
    expect(targetsOf(recentRequest({ provider: 'openai', model: 'claude', attempts }))).toEqual({
      asked: { provider: 'openai', model: 'gpt' },
      answered: { provider: 'anthropic', model: 'claude' },
    });
    const failed = targetsOf(recentRequest({ code: 'provider_error', attempts: [first, first] }));
    expect(failed).not.toHaveProperty('answered');
  });
});
