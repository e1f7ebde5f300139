import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { problemHandler } from '../../../api/http/problem.js';
import { modelNotFound, useOpenAiErrors } from '../../../api/openai/openai-error.js';
import { Failure, type FailureCode, failureCodes } from '../../../shared/failures.js';
import { modelNotAllowed } from '../../../shared/fleet/live-pools.js';
import { invalidRequest } from '../../../shared/validation.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

let thrown: unknown;
const app = express();
app.use(useOpenAiErrors, () => {
  throw thrown;
});
app.use(problemHandler(createRecordingLog().log));
const server = await serve(app);
afterAll(() => server.close());

async function answerTo(error: unknown) {
  thrown = error;
  const response = await fetch(server.url);
  const { headers, status } = response;
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  const { error: body, ...more } = (await response.json()) as { error: Record<string, unknown> };
  expect(more).toEqual({});
  return {
    status,
    ...body,
    shouldRetry: headers.get('x-should-retry'),
    retryAfter: headers.get('retry-after'),
    retryAfterMs: headers.get('retry-after-ms'),
    headers,
  };
}

const invalid = [400, 'invalid_request_error', 'false'] as const;
const server502 = (retry: string) => [502, 'server_error', retry] as const;

/** Status, type, x-should-retry; seconds of Retry-After. */
const table: Record<FailureCode, readonly [number, string, string, seconds?: string]> = {
  invalid_json: invalid,
  invalid_request: invalid,
  empty_conversation: invalid,
  provider_rejected: invalid,
  content_blocked: invalid,
  context_length_exceeded: invalid,
  unauthorized: [401, 'invalid_request_error', 'false'],
  insufficient_scope: [403, 'invalid_request_error', 'false'],
  cross_origin: [403, 'invalid_request_error', 'false'],
  unknown_provider: [404, 'invalid_request_error', 'false'],
  not_found: [404, 'invalid_request_error', 'false'],
  method_not_allowed: [405, 'invalid_request_error', 'false'],
  slug_taken: [409, 'invalid_request_error', 'false'],
  name_taken: [409, 'invalid_request_error', 'false'],
  own_user: [409, 'invalid_request_error', 'false'],
  precondition_failed: [412, 'invalid_request_error', 'false'],
  payload_too_large: [413, 'invalid_request_error', 'false'],
  unsupported_media_type: [415, 'invalid_request_error', 'false'],
  idempotency_key_reused: [422, 'invalid_request_error', 'false'],
  rate_limited: [429, 'rate_limit_error', 'true', '60'],
  provider_rate_limited: [429, 'rate_limit_error', 'true', '1'],
  overloaded: [503, 'server_error', 'true', '1'],
  queue_unavailable: [503, 'server_error', 'true', '2'],
  database_unavailable: [503, 'server_error', 'true', '2'],
  provider_unavailable: [503, 'server_error', 'false', '5'],
  internal: [500, 'server_error', 'false'],
  provider_error: server502('true'),
  provider_timeout: [504, 'server_error', 'false'],
  timeout: [504, 'server_error', 'false'],
};

describe('an error', () => {
  it.each(failureCodes)('for %s has its status, its type, and whether to try again', async (code) => {
    const [status, type, shouldRetry, seconds] = table[code];
    const answer = await answerTo(new Failure(code));
    expect(answer).toMatchObject({
      ...{ status, type, shouldRetry, param: null },
      code: code === 'content_blocked' ? 'content_filter' : code,
      retryAfter: seconds ?? (shouldRetry === 'true' ? '1' : null),
    });
    expect(answer.retryAfterMs).toBe(answer.retryAfter && `${answer.retryAfter}000`);
    expect(answer).toHaveProperty('message', expect.stringMatching(/^[A-Z].*\.$/));
  });

  it.each(['internal', 'provider_error'] as const)(
    'for %s is tried again as the failure says',
    async (code) => {
      for (const retryable of [true, false])
        expect(await answerTo(new Failure(code, { retryable }))).toMatchObject({
          shouldRetry: String(retryable),
        });
    },
  );

  it('for a timeout is tried again only where no provider was called', async () => {
    expect(await answerTo(new Failure('timeout', { neverCalled: true }))).toMatchObject({
      ...{ status: 504, shouldRetry: 'true', retryAfter: '1' },
    });
    for (const code of ['timeout', 'provider_timeout'] as const)
      expect(await answerTo(new Failure(code, { retryable: true }))).toMatchObject({ shouldRetry: 'false' });
  });

  it('is never tried again by clients where the table says so, whatever the failure says', async () => {
    expect(await answerTo(new Failure('provider_rejected', { retryable: true }))).toMatchObject({
      shouldRetry: 'false',
    });
  });

  it('says how long to wait, in seconds rounded up and in milliseconds', async () => {
    expect(await answerTo(new Failure('overloaded', { retryAfterMs: 1500.2 }))).toMatchObject({
      retryAfter: '2',
      retryAfterMs: '1501',
    });
  });

  it('is ours where the provider refused our own credentials', async () => {
    expect(await answerTo(new Failure('provider_rejected', { credentialsRefused: true }))).toMatchObject({
      ...{ status: 502, type: 'server_error', code: 'provider_rejected', shouldRetry: 'false' },
    });
  });

  it.each([
    ['/messages/0/content/1/text', 'messages[0].content[1].text', 'messages[0].content[1].text is wrong.'],
    ['/stop/1', 'stop[1]', 'stop[1] is wrong.'],
    ['/n', 'n', 'n is wrong.'],
    ['Prefer', 'Prefer', 'Prefer is wrong.'],
    ['', null, 'The body is wrong.'],
  ])('at %j names the place', async (pointer, param, message) => {
    expect(await answerTo(invalidRequest([{ pointer, detail: 'is wrong' }]))).toMatchObject({
      param,
      message,
    });
  });

  it.each([modelNotFound(), modelNotAllowed('openai')])(
    'for a model that may not be used is a 404',
    async (failure) => {
      expect(await answerTo(failure)).toMatchObject({
        ...{ status: 404, type: 'invalid_request_error', param: 'model', code: 'model_not_found' },
        ...{ shouldRetry: 'false', message: expect.stringContaining('GET /v1/models') },
      });
    },
  );

  it('for a model that its provider does not know is the same, but says so', async () => {
    const failure = new Failure('provider_rejected', { modelUnknown: true });
    expect(await answerTo(failure)).toMatchObject({
      ...{ status: 404, type: 'invalid_request_error', param: 'model', code: 'model_not_found' },
      ...{ shouldRetry: 'false', message: expect.stringContaining('its provider does not know') },
    });
  });

  it('has the headers that its status requires', async () => {
    const headers = { 'WWW-Authenticate': 'Bearer, Basic' };
    const answer = await answerTo(new Failure('unauthorized', { headers }));
    expect(answer.headers.get('www-authenticate')).toBe('Bearer, Basic');
  });

  it('says nothing of what nobody expected', async () => {
    const answer = await answerTo(new TypeError('canary'));
    expect(answer).toMatchObject({ status: 500, code: 'internal', shouldRetry: 'false' });
    expect(JSON.stringify(answer)).not.toContain('canary');
  });
});
