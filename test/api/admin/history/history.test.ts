import { describe, expect, it } from 'vitest';
import { History } from '../../../../api/admin/history/history.js';
import type { RecentRequest, RequestCode } from '../../../../shared/contracts/history.js';
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
    const attempts = [
      { provider: 'openai', model: 'gpt', code: 'provider_rejected', providerError },
    ] as const;
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

  const provider = 'openai';
  it.each<[string, RequestCode, RecentRequest['attempts']]>([
    ['a refusal of the API', 'invalid_request', []],
    ['a refusal of a worker', 'invalid_request', [{ provider, model: canary, code: 'invalid_request' }]],
    [
      'a provider that was passed over before the check',
      'provider_error',
      [
        { provider, code: 'provider_unavailable' },
        { provider: 'anthropic', model: 'm', code: 'provider_error' },
      ],
    ],
  ])('logs no model that was not checked: %s', (_, code, attempts) => {
    const { log, text } = createRecordingLog();
    new History({ log }).recordEnd({ ...request, model: canary, code, attempts }, 'id');
    expect(text()).toContain(code);
    expect(text()).not.toContain(canary);
  });
});
