import { afterAll, describe, expect, it } from 'vitest';
import {
  sendAnthropicError,
  stopDetailsOf,
  toAnthropicError,
  toErrorEvent,
} from '../../../../api/chat-apis/anthropic-messages/anthropic-error.js';
import { modelNotFound } from '../../../../api/chat-apis/request-options.js';
import { sendFailuresBy } from '../../../../api/http/problem.js';
import { describeExcess, Failure, type FailureCode, failureCodes } from '../../../../shared/failures.js';
import { modelNotAllowed } from '../../../../shared/fleet/live-pools.js';
import { invalidRequest } from '../../../../shared/validation.js';
import { serveRoutes } from '../../../support/app.js';
import { createClient } from '../../../support/client.js';

type Facts = ConstructorParameters<typeof Failure>[1];

let thrown: unknown;
const server = await serveRoutes((app) =>
  app.use((_request, response) => {
    response.set('X-Request-Id', 'our-id');
    sendFailuresBy(response, sendAnthropicError);
    throw thrown;
  }),
);
afterAll(server.close);
const ask = createClient(server.url);

async function answerTo(error: unknown, headers: Record<string, string> = {}) {
  thrown = error;
  const { headers: told, status, body } = await ask<{ error: Record<string, unknown> }>({ headers });
  expect(told.get('content-type')).toBe('application/json; charset=utf-8');
  expect([told.get('request-id'), told.get('retry-after-ms')]).toEqual(['our-id', null]);
  expect(body).toEqual({
    ...{ type: 'error', request_id: 'our-id' },
    error: { type: expect.any(String), message: expect.any(String) },
  });
  const [shouldRetry, retryAfter] = [told.get('x-should-retry'), told.get('retry-after')];
  return { status, ...body.error, shouldRetry, retryAfter };
}

const messageOf = (failure: Failure, betas?: string[]) =>
  toAnthropicError(failure, 'id', betas).error.message;

const wrong = 'invalid_request_error';

/** Codes, status, type, x-should-retry, seconds of Retry-After. */
const table: [FailureCode[], number, string, string, seconds?: string][] = [
  [['invalid_json', 'invalid_request', 'empty_conversation', 'provider_rejected'], 400, wrong, 'false'],
  [['content_blocked', 'context_length_exceeded'], 400, wrong, 'false'],
  [['unauthorized'], 401, 'authentication_error', 'false'],
  [['insufficient_scope', 'suspended', 'cross_origin'], 403, 'permission_error', 'false'],
  [['unknown_provider', 'not_found'], 404, 'not_found_error', 'false'],
  [['method_not_allowed'], 405, wrong, 'false'],
  [['slug_taken', 'name_taken', 'own_user'], 409, wrong, 'false'],
  [['precondition_failed'], 412, wrong, 'false'],
  [['payload_too_large'], 413, 'request_too_large', 'false'],
  [['unsupported_media_type'], 415, wrong, 'false'],
  [['idempotency_key_reused'], 422, wrong, 'false'],
  [['rate_limited'], 429, 'rate_limit_error', 'true', '60'],
  [['provider_rate_limited'], 429, 'rate_limit_error', 'true', '1'],
  [['overloaded'], 503, 'api_error', 'true', '1'],
  [['queue_unavailable', 'database_unavailable'], 503, 'api_error', 'true', '2'],
  [['provider_unavailable'], 503, 'api_error', 'true', '5'],
  [['provider_error'], 502, 'api_error', 'true', '1'],
  [['internal'], 500, 'api_error', 'false'],
  [['provider_timeout', 'timeout'], 504, 'timeout_error', 'true', '1'],
];

describe('an error', () => {
  it.each(table)('for %s → %i, its type, and whether to try again', async (codes, status, type, ...retry) => {
    const [shouldRetry, retryAfter = null] = retry;
    for (const code of codes) {
      const answer = await answerTo(new Failure(code));
      expect(answer).toMatchObject({ status, type, shouldRetry, retryAfter });
      const token = code === 'context_length_exceeded' ? ' capability_rejected: prompt_too_long' : '';
      expect(answer).toHaveProperty('message', expect.stringMatching(new RegExp(`^[A-Z].*\\.${token}$`)));
    }
  });

  it('of each code is in the table', () => {
    expect(table.flatMap(([codes]) => codes).toSorted()).toEqual(failureCodes.toSorted());
  });

  const never = { shouldRetry: 'false', retryAfter: null };
  it.each<[FailureCode, Facts, object]>([
    ['internal', { retryable: true }, { shouldRetry: 'true', retryAfter: '1' }],
    // Credit is spent.
    ['provider_error', { retryable: false }, never],
    ['provider_rate_limited', { retryable: false, retryAfterMs: 300_000 }, { ...never, retryAfter: '300' }],
    ['provider_rate_limited', { retryAfterMs: 300_000 }, { shouldRetry: 'true', retryAfter: '60' }],
    ['overloaded', { retryAfterMs: 1500.2 }, { shouldRetry: 'true', retryAfter: '2' }],
    ['overloaded', { retryAfterMs: 0 }, { retryAfter: '1' }],
    ['rate_limited', { retryAfterMs: 3_600_000 }, { retryAfter: '60' }],
    // Another attempt of the chat may have met what passes.
    ['provider_rejected', { retryable: true }, { ...never, status: 400 }],
    ['provider_rejected', { credentialsRefused: true }, { ...never, status: 502, type: 'api_error' }],
    ['provider_rejected', { credentialsRefused: true, retryable: true }, never],
    ['invalid_json', { status: 408 }, { ...never, status: 408, type: wrong }],
  ])('for %s with %j → %j', async (code, facts, expected) => {
    expect(await answerTo(new Failure(code, facts))).toMatchObject(expected);
  });

  it('of a status that requires headers, and one that nobody expected → has them, and says nothing of it', async () => {
    thrown = new Failure('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer, Basic' } });
    expect((await ask()).headers.get('www-authenticate')).toBe('Bearer, Basic');
    const answer = await answerTo(new TypeError('canary'));
    expect(answer).toMatchObject({ status: 500, type: 'api_error', shouldRetry: 'false' });
    expect(JSON.stringify(answer)).not.toContain('canary');
  });

  it.each([
    ['is none', modelNotFound()],
    ['may not be used', modelNotAllowed('openai')],
    ['its provider does not know', new Failure('provider_rejected', { modelUnknown: true })],
  ])('for a model that %s → a 404 that names the field', async (_, failure) => {
    const message = expect.stringMatching(/^model: .* GET \/v1\/models lists models\.$/);
    expect(await answerTo(failure)).toMatchObject({ status: 404, type: 'not_found_error', message });
    expect(toErrorEvent(failure, 'id').error.type).toBe('not_found_error');
  });
});

describe('the place that an error names', () => {
  it.each([
    ['/messages/0/content/1/text', 'messages.0.content.1.text: is wrong.'],
    ['/max_tokens', 'max_tokens: is wrong.'],
    ['Idempotency-Key', 'Idempotency-Key: is wrong.'],
    ['', 'The body is wrong.'],
    ['/tools/0/input_schema/ü {', 'The body is wrong.'],
  ])('is that of the body: %j → %s', (pointer, message) => {
    expect(messageOf(invalidRequest([{ pointer, detail: 'is wrong' }]))).toBe(message);
  });

  const place = (provider: 'anthropic' | 'openai', refusedParameter?: string) =>
    messageOf(
      new Failure('provider_rejected', { provider, refusedParameter, detail: `at ${refusedParameter}.` }),
    );
  const refused = 'The provider refused the request. Operators can see the status and the type of its error.';

  it.each([
    ['messages.7.content.2.image', 'messages.7.content.2.image'],
    ['tools.0.custom.input_schema', 'tools.0.custom.input_schema'],
    ['toolChoice', 'tool_choice'],
    ['messages', 'messages'],
  ])('is that of Anthropic, whose request is the caller’s: %s', (theirs, own) => {
    expect(place('anthropic', theirs)).toBe(`${own}: ${refused}`);
  });

  it.each([
    ['input[3].content', 'messages'],
    ['contents[0].parts', 'messages'],
    ['messages.7.content.2.image', 'messages'],
    ['instructions', 'system'],
    ['systemInstruction.parts', 'system'],
    ['max_output_tokens', 'max_tokens'],
    ['inferenceConfig.maxTokens', 'max_tokens'],
    ['text.format.schema', 'output_config.format'],
    ['generationConfig.responseJsonSchema', 'output_config.format'],
    ['reasoning.effort', 'output_config.effort'],
    ['reasoningEffort', 'output_config.effort'],
    ['toolConfig.tools.0.toolSpec', 'tools'],
    ['toolConfig.toolChoice', 'tool_choice'],
    ['toolChoice', 'tool_choice'],
    ['tools[0].function.parameters', 'tools'],
    ['topP', 'top_p'],
    ['stop', 'stop_sequences'],
  ])('is the field for that of another provider: %s → %s', (theirs, own) => {
    expect(place('openai', theirs)).toBe(`${own}: ${refused}`);
  });

  it.each(['seed', 'inferenceConfig', undefined])('is none for what has no field here: %s', (theirs) => {
    expect(place('openai', theirs)).toBe(refused);
  });
});

describe('the last word of an error', () => {
  const rejected = (capability?: string) => new Failure('provider_rejected', { capability });

  it.each(['mid_conv_system', 'thinking_type:adaptive', 'image_block'])(
    'is what the provider cannot do, without a full stop: %s',
    (name) => expect(messageOf(rejected(name))).toMatch(new RegExp(`\\. capability_rejected: ${name}$`)),
  );

  it('is the value of a header only where the caller has sent it', async () => {
    const failure = rejected('beta_header:effort-2025-11-24');
    const token = /\. capability_rejected: beta_header:effort-2025-11-24$/;
    for (const betas of [undefined, [], ['effort-2025'], ['a', 'effort-2025-11-24-b']])
      expect(messageOf(failure, betas)).not.toContain('effort');
    expect(messageOf(failure, ['a', 'effort-2025-11-24'])).toMatch(token);
    const headers = { 'anthropic-beta': 'claude-code-20250219, effort-2025-11-24' };
    expect(await answerTo(failure, headers)).toHaveProperty('message', expect.stringMatching(token));
    expect(await answerTo(failure)).toHaveProperty('message', expect.not.stringContaining('effort'));
  });

  const sizes = (facts: Facts) => messageOf(new Failure('context_length_exceeded', facts));
  const detail = describeExcess(200_000);
  // What Claude Code reads: https://github.com/anthropics/claude-code/issues/228
  it.each<[Facts, RegExp]>([
    [
      { detail, contextTokens: 200_000, askedTokens: { inputTokens: 210_000 } },
      /^prompt is too long: 210000 tokens > 200000 maximum\. /,
    ],
    [
      { detail, contextTokens: 200_000, askedTokens: { inputTokens: 199_759, maxTokens: 8192 } },
      /^input length and `max_tokens` exceed context limit: 199759 \+ 8192 > 200000, decrease .* again\. /,
    ],
    [{ detail, contextTokens: 200_000 }, /^This model's maximum context length is 200000 tokens /],
    [{}, /^This model's maximum context length is exceeded /],
  ])('follows the sizes of a conversation that is too long: %j', (facts, sentence) => {
    expect(sizes(facts)).toMatch(sentence);
    expect(sizes(facts)).toMatch(/\. capability_rejected: prompt_too_long$/);
  });
});

describe('the event that ends a stream', () => {
  it.each<[FailureCode, Facts, string]>([
    ['provider_error', {}, 'overloaded_error'],
    ['provider_timeout', {}, 'overloaded_error'],
    ['rate_limited', {}, 'overloaded_error'],
    ['internal', { retryable: true }, 'overloaded_error'],
    ['internal', {}, 'api_error'],
    ['provider_error', { retryable: false }, 'api_error'],
    ['provider_rejected', {}, wrong],
    ['unauthorized', {}, 'authentication_error'],
  ])('for %s with %j → %s', (code, facts, type) => {
    const failure = new Failure(code, facts);
    const { error, ...more } = toErrorEvent(failure, 'id', ['a']);
    expect(more).toEqual({ type: 'error', request_id: 'id' });
    expect(error).toEqual({ type, message: messageOf(failure, ['a']) });
  });
});

describe('a reply that a provider has withheld', () => {
  it.each<[Failure, object | undefined]>([
    [new Failure('content_blocked', { refusal: 'cyber' }), { category: 'cyber' }],
    [new Failure('content_blocked', { refusal: 'other' }), { category: null }],
    [new Failure('content_blocked'), { category: null }],
    [new Failure('provider_error'), undefined],
  ])('has details for its end: %j → %j', (failure, expected) => {
    expect(stopDetailsOf(failure)).toEqual(expected && { type: 'refusal', explanation: null, ...expected });
  });
});
