import { describe, expect, it } from 'vitest';
import { History } from '../../../../api/admin/history/history.js';
import type { RecentRequest } from '../../../../shared/history.js';
import { promptCanary as canary } from '../../../support/canaries.js';
import { createRecordingLog } from '../../../support/recording-log.js';

const request: RecentRequest = {
  ...{ id: 'a', user: 'anna', provider: 'openai', model: 'gpt', streamed: false, endedMs: 5 },
  ...{ receivedAt: '2026-11-23T12:00:00.000Z', code: 'ok', attempts: [] },
};

describe('History', () => {
  it('logs provider, model and user of each chat that failed, and what the provider answered with', () => {
    const { log, lines } = createRecordingLog();
    const history = new History({ log });
    history.recordEnd(request, 'id of anna');
    const providerError = { status: 400, type: 'invalid_request_error' };
    const attempts = [{ provider: 'openai', code: 'provider_rejected', providerError }] as const;
    history.recordEnd(
      { ...request, id: 'b', code: 'provider_rejected', attempts: [...attempts] },
      'id of anna',
    );
    expect(lines).toMatchObject([
      {
        ...{ msg: 'chat failed', requestId: 'b', user: 'id of anna', userName: 'anna' },
        ...{ provider: 'openai', model: 'gpt', code: 'provider_rejected', attempts },
      },
    ]);
  });

  it('logs no model that was not checked', () => {
    const { log, text } = createRecordingLog();
    new History({ log }).recordEnd({ ...request, model: canary, code: 'invalid_request' }, 'id');
    expect(text()).toContain('invalid_request');
    expect(text()).not.toContain(canary);
  });
});
