import { afterAll, describe, expect, it } from 'vitest';
import { sendOpenAiError } from '../../../../api/chat-apis/openai-chat/openai-error.js';
import { modelNotFound } from '../../../../api/chat-apis/request-options.js';
import { sendFailuresBy } from '../../../../api/http/problem.js';
import { describeExcess, Failure, type FailureCode, failureCodes } from '../../../../shared/failures.js';
import { modelNotAllowed } from '../../../../shared/fleet/live-pools.js';
import { invalidRequest } from '../../../../shared/validation.js';
import { serveRoutes } from '../../../support/app.js';
import { createClient } from '../../../support/client.js';

let thrown: unknown;
const server = await serveRoutes((app) =>
  app.use((_request, response) => {
    sendFailuresBy(response, sendOpenAiError);
    throw thrown;
  }),
);
afterAll(server.close);
const ask = createClient(server.url);

async function answerTo(error: unknown) {
  thrown = error;
  const { headers, status, body: sent } = await ask<{ error: Record<string, unknown> }>();
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  const { error: body, ...more } = sent;
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

const wrong = 'invalid_request_error';

/** Codes, status, type, x-should-retry; seconds of Retry-After. */
const table: [FailureCode[], number, string, string, seconds?: string][] = [
  [['invalid_json', 'invalid_request', 'empty_conversation', 'provider_rejected'], 400, wrong, 'false'],
  [['content_blocked', 'context_length_exceeded'], 400, wrong, 'false'],
  [['unauthorized'], 401, wrong, 'false'],
  [['insufficient_scope', 'suspended', 'cross_origin'], 403, wrong, 'false'],
  [['unknown_provider', 'not_found'], 404, wrong, 'false'],
  [['method_not_allowed'], 405, wrong, 'false'],
  [['slug_taken', 'name_taken', 'own_user'], 409, wrong, 'false'],
  [['precondition_failed'], 412, wrong, 'false'],
  [['payload_too_large'], 413, wrong, 'false'],
  [['unsupported_media_type'], 415, wrong, 'false'],
  [['idempotency_key_reused'], 422, wrong, 'false'],
  [['rate_limited'], 429, 'rate_limit_error', 'true', '60'],
  [['provider_rate_limited'], 429, 'rate_limit_error', 'true', '1'],
  [['overloaded'], 503, 'server_error', 'true', '1'],
  [['queue_unavailable', 'database_unavailable'], 503, 'server_error', 'true', '2'],
  [['provider_unavailable'], 503, 'server_error', 'false', '5'],
  [['internal'], 500, 'server_error', 'false'],
  [['provider_error'], 502, 'server_error', 'true'],
  [['provider_timeout', 'timeout'], 504, 'server_error', 'false'],
];

describe('an error', () => {
  it.each(table)('for %s → %i, its type, and whether to try again', async (codes, status, type, ...retry) => {
    const [shouldRetry, seconds = shouldRetry === 'true' ? '1' : null] = retry;
    for (const code of codes) {
      const answer = await answerTo(new Failure(code));
      expect(answer).toMatchObject({
        ...{ status, type, shouldRetry, param: null, retryAfter: seconds },
        ...{ code: code === 'content_blocked' ? 'content_filter' : code },
        retryAfterMs: seconds && `${seconds}000`,
      });
      expect(answer).toHaveProperty('message', expect.stringMatching(/^[A-Z].*\.$/));
    }
  });

  it('of each code is in the table', () => {
    expect(table.flatMap(([codes]) => codes).toSorted()).toEqual(failureCodes.toSorted());
  });

  const again = { shouldRetry: 'true' };
  const never = { shouldRetry: 'false' };
  it.each<[FailureCode, ConstructorParameters<typeof Failure>[1], object]>([
    ['internal', { retryable: true }, again],
    ['internal', { retryable: false }, never],
    ['provider_error', { retryable: true }, again],
    ['provider_error', { retryable: false }, never],
    ['timeout', { neverCalled: true }, { ...again, status: 504, retryAfter: '1' }],
    // The call may have been charged, and each retry would be, too.
    ['timeout', { retryable: true }, never],
    ['provider_timeout', { retryable: true }, never],
    ['provider_rejected', { retryable: true }, never],
    ['provider_rejected', { credentialsRefused: true }, { ...never, status: 502, type: 'server_error' }],
    ['provider_rejected', { refusedParameter: 'toolChoice' }, { ...never, param: 'tool_choice' }],
    ['provider_rejected', { refusedParameter: 'tools.0.name' }, { ...never, param: 'tools.0.name' }],
    ...[
      ['input', 'messages'],
      ['input[3].content', 'messages'],
      ['contents[0].parts', 'messages'],
      ['system.0.text', 'messages'],
      ['max_output_tokens', 'max_completion_tokens'],
      ['inferenceConfig.maxTokens', 'max_completion_tokens'],
      ['text.format.schema', 'response_format'],
      ['output_config.format', 'response_format'],
      ['reasoning.effort', 'reasoning_effort'],
      ['output_config.effort', 'reasoning_effort'],
      ['text.verbosity', 'verbosity'],
      ['toolConfig.toolChoice', 'tool_choice'],
      ['messages.1.content', 'messages.1.content'],
    ].map(([place, param]): [FailureCode, object, object] => [
      'provider_rejected',
      { refusedParameter: place },
      { ...never, param },
    ]),
    ['overloaded', { retryAfterMs: 1500.2 }, { retryAfter: '2', retryAfterMs: '1501' }],
  ])('for %s with %j → %j', async (code, facts, expected) => {
    expect(await answerTo(new Failure(code, facts))).toMatchObject(expected);
  });

  it.each([
    ['/messages/0/content/1/text', 'messages[0].content[1].text', 'messages[0].content[1].text is wrong.'],
    ['/stop/1', 'stop[1]', 'stop[1] is wrong.'],
    ['/n', 'n', 'n is wrong.'],
    ['Prefer', 'Prefer', 'Prefer is wrong.'],
    ['', null, 'The body is wrong.'],
  ])('at %j → names the place', async (pointer, param, message) => {
    const answer = await answerTo(invalidRequest([{ pointer, detail: 'is wrong' }]));
    expect(answer).toMatchObject({ param, message });
  });

  it.each<[string, RegExp]>([
    // packages/opencode/src/provider/error.ts of anomalyco/opencode, and packages/ai/src/utils/overflow.ts of pi.
    ['opencode and pi', /exceeds the context window/i],
    // packages/core/src/utils/contextLengthError.ts
    ['qwen-code', /\bcontext[_\s-]?length[_\s-]?exceeded\b/i],
    // context-error-handling.ts of both
    ['Cline and Roo Code', /context\s*(length|window)/i],
    // dist/utils/client.js of @langchain/openai
    ['LangChain', /context_length_exceeded/],
    // litellm/litellm_core_utils/exception_mapping_utils.py
    ['LiteLLM, and so aider', /this model's maximum context length is/i],
  ])('about a conversation that is too long → %s know it by the message', async (_, pattern) => {
    for (const detail of [undefined, describeExcess(200_000)]) {
      const answer = await answerTo(new Failure('context_length_exceeded', { detail }));
      expect(answer).toHaveProperty('message', expect.stringMatching(pattern));
    }
  });

  const listed = 'GET /v1/models';
  const unknown = new Failure('provider_rejected', { modelUnknown: true });
  it.each<[string, Failure, string]>([
    ['is none', modelNotFound(), listed],
    ['may not be used', modelNotAllowed('openai'), listed],
    ['its provider does not know', unknown, 'its provider does not know'],
  ])('for a model that %s → a 404 that says so', async (_, failure, text) => {
    expect(await answerTo(failure)).toMatchObject({
      ...{ status: 404, type: wrong, param: 'model', code: 'model_not_found' },
      ...{ shouldRetry: 'false', message: expect.stringContaining(text) },
    });
  });

  it('of a status that requires headers → has them', async () => {
    const headers = { 'WWW-Authenticate': 'Bearer, Basic' };
    const answer = await answerTo(new Failure('unauthorized', { headers }));
    expect(answer.headers.get('www-authenticate')).toBe('Bearer, Basic');
  });

  it('that nobody expected → says nothing of it', async () => {
    const answer = await answerTo(new TypeError('canary'));
    expect(answer).toMatchObject({ status: 500, code: 'internal', shouldRetry: 'false' });
    expect(JSON.stringify(answer)).not.toContain('canary');
  });
});
