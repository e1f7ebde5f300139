import { describe, expect, it } from 'vitest';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import {
  classifyError,
  ProviderCallError,
  refusalOf,
  refusesCredentials,
} from '../../../workers/providers/error-classification.js';

const code = (status: number | undefined, ...words: string[]) =>
  classifyError(new Error('x'), { status, words }).code;
const nowMs = Date.parse('2026-11-20T12:00:00Z');
const retryAfterMs = (headers: Record<string, string>, status = 429) =>
  classifyError(new Error('x'), { status, header: (name) => headers[name] }, nowMs).facts.retryAfterMs;

describe('classifyError', () => {
  const refusals = [400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 451, 499];
  const passing = [undefined, 200, 408, 409, 500, 501, 502, 503, 504, 529];
  it.each<[number | undefined, FailureCode, boolean]>([
    ...refusals.map((status): [number, FailureCode, boolean] => [status, 'provider_rejected', false]),
    ...passing.map((status): [number | undefined, FailureCode, boolean] => [status, 'provider_error', true]),
    [429, 'provider_rate_limited', true],
  ])('takes a %s for a %s, retryable: %s', (status, expected, retryable) => {
    expect(classifyError(new Error('x'), { status })).toMatchObject({ code: expected, retryable });
  });

  it('believes Bedrock exceptions over their status', () => {
    expect(code(429, 'ModelNotReadyException')).toBe('provider_error');
    expect(code(424, 'ModelErrorException')).toBe('provider_error');
    expect(code(400, 'ThrottlingException')).toBe('provider_rate_limited');
  });

  it.each([
    ['context_length_exceeded', 'context_length_exceeded'],
    ['content_filter', 'content_blocked'],
    ['content_policy_violation', 'content_blocked'],
    ['invalid_prompt', 'content_blocked'],
  ])('takes a 400 with the code %s for %s, which is not retried', (word, expected) => {
    const failure = classifyError(new Error('x'), { status: 400, words: [word, 'invalid_request_error'] });
    expect(failure).toMatchObject({ code: expected, retryable: false });
  });

  it.each([
    ['prompt is too long: 210 tokens > 200 maximum', 'context_length_exceeded'],
    ['input length and `max_tokens` exceed context limit: 178 + 64 > 200', 'context_length_exceeded'],
    ['Input is too long for requested model.', 'context_length_exceeded'],
    [
      'The input token count (12) exceeds the maximum number of tokens allowed (4).',
      'context_length_exceeded',
    ],
    ['Output blocked by content filtering policy', 'content_blocked'],
    ['max_tokens: Field required', 'provider_rejected'],
  ])('tells refusals apart where only the text does: %s', (text, expected) => {
    expect(classifyError(new Error('x'), { status: 400, text }).code).toBe(expected);
    expect(classifyError(new Error('x'), { status: 500, text }).code).toBe('provider_error');
  });

  it.each<[string, number | undefined]>([
    ["This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", 8192],
    ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072],
    ['prompt is too long: 213462 tokens > 200000 maximum', 200_000],
    ['input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input', 200_000],
    ['The input token count (12) exceeds the maximum number of tokens allowed (4).', 4],
    ['Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 9.', 272_000],
    ["The input (9 tokens) is longer than the model's context length (8 tokens).", 8],
    ['Prompt contains 9 tokens, too large for model with 32768 maximum context length', 32_768],
    ['Input is too long for requested model.', undefined],
    ["This model's maximum context length is 99999999999 tokens.", undefined],
    ['maximum context length is my-secret', undefined],
  ])('reads the limit of the model, and nothing else, in %j', (text, tokens) => {
    const facts = { status: 400, words: ['context_length_exceeded'], text };
    const failure = classifyError(new Error('x'), facts);
    expect(failure.facts.contextTokens).toBe(tokens);
    expect(JSON.stringify(failure)).not.toMatch(/secret|prompt|input/i);
    expect(classifyError(new Error('x'), { status: 400, text: 'temperature' }).facts.contextTokens).toBe(
      undefined,
    );
  });

  it('goes by the word where there is no status to go by', () => {
    expect(code(undefined, 'rate_limit_error')).toBe('provider_rate_limited');
    expect(code(200, 'invalid_request_error')).toBe('provider_rejected');
    expect(code(undefined, 'overloaded_error')).toBe('provider_error');
    expect(code(undefined, '__proto__')).toBe('provider_error');
  });

  it('reads Retry-After in seconds, as a date and in milliseconds', () => {
    expect(retryAfterMs({ 'retry-after': '3' })).toBe(3000);
    expect(retryAfterMs({ 'retry-after': 'Fri, 20 Nov 2026 12:01:00 GMT' })).toBe(60_000);
    expect(retryAfterMs({ 'retry-after': 'Fri, 20 Nov 2026 11:00:00 GMT' })).toBe(0);
    expect(retryAfterMs({ 'retry-after': '3', 'retry-after-ms': '250' })).toBe(250);
    expect(retryAfterMs({ 'retry-after': '2' }, 503)).toBe(2000);
  });

  it.each(['', 'soon', '-1', 'NaN', '9'.repeat(400)])('ignores a Retry-After of %j', (value) => {
    expect(retryAfterMs({ 'retry-after': value })).toBeUndefined();
  });

  it('never says when to retry what was refused', () => {
    expect(retryAfterMs({ 'retry-after': '3' }, 400)).toBeUndefined();
  });

  it('keeps name, status and word of the error, and nothing it quotes', () => {
    const secret = 'sk-secret at https://provider.example';
    const error = new TypeError(secret, { cause: Object.assign(new Error(secret), { code: 'ECONNRESET' }) });
    const failure = classifyError(error, { status: 500, words: [secret] });
    expect(failure.facts.cause).toEqual(new ProviderCallError('TypeError', 500, 'ECONNRESET'));
    expect(JSON.stringify(failure) + String((failure.cause as Error).stack)).not.toContain('secret');
  });
});

describe('refusesCredentials', () => {
  const refuses = (status: number | undefined, ...words: string[]) =>
    refusesCredentials(classifyError(new Error('x'), { status, words }));

  it.each<[boolean, number | undefined, ...string[]]>([
    [true, 401],
    [true, 403],
    [true, 403, 'AccessDeniedException'],
    [true, 400, 'ExpiredTokenException'],
    [true, undefined, 'authentication_error'],
    [true, 200, 'permission_error'],
    [false, 400],
    [false, 404],
    [false, 400, 'ValidationException'],
    [false, 200, 'invalid_request_error'],
    [false, 429],
    [false, 500],
    [false, undefined],
  ])('says %s of %s %s', (expected, ...facts) => {
    expect(refuses(...facts)).toBe(expected);
  });

  it('knows nothing of what is no error of a provider', () => {
    expect(refusesCredentials(new Failure('provider_rejected'))).toBe(false);
  });
});

describe('refusalOf', () => {
  const behind = 'The model returned the following errors:';
  /** The refused part, the parameter that the provider names, and its text. */
  const refusals = `
    temperature        | temperature         | 400 Unsupported value: 'temperature' does not support 0.2 with this model.
    reasoningEffort    | reasoning_effort    | Unsupported value: 'reasoning_effort' does not support 'max'.
    parallelToolCalls  | parallel_tool_calls |
    verbosity          | verbosity           |
    presencePenalty    | presence_penalty    |
    seed               | seed                |
    verbosity          |                     | Unrecognized request argument supplied: verbosity
    temperature        |                     | \`temperature\` is deprecated for this model.
    temperature topP   |                     | \`temperature\` and \`top_p\` cannot both be specified for this model.
    reasoningEffort    |                     | This model does not support the effort parameter
    parallelToolCalls  |                     | tool_choice.disable_parallel_tool_use: Extra inputs are not permitted
    topP               |                     | ${behind} \`top_p\` is deprecated for this model.
    reasoningEffort    |                     | ${behind} This model does not support the effort parameter
    reasoningEffort    |                     | Thinking level is not supported for this model.
    frequencyPenalty presencePenalty |       | Penalty is not enabled for this model
    temperature        |                     | This model doesn't support the temperature field. Remove it and try again.
    signatures         |                     | messages.1.content.0: Invalid \`signature\` in \`thinking\` block
    signatures         |                     | messages.1.content.2: Invalid \`data\` in \`redacted_thinking\` block
    signatures         |                     | Thought signature is not valid.
    signatures         |                     | Corrupted thought signature.
    signatures         |                     | This model doesn't support the reasoningContent.reasoningText.signature field.
    toolChoice         | tool_choice         |
    toolChoice         |                     | tool_choice: type "tool" and "any" are not supported for this model.
    toolChoice         |                     | ${behind} tool_choice: type "tool" and "any" are not supported for this model.
    toolChoice         |                     | Thinking may not be enabled when tool_choice forces tool use.
    toolChoice         |                     | This model doesn't support the toolConfig.toolChoice.any field.
    effort             | reasoning_effort    | To use function tools, use /v1/responses or set reasoning_effort to 'none'.
                       |                     |
                       | messages            |
                       | tools[0].function.parameters | 'temperature' is not supported
                       |                     | tools.0.custom.input_schema.properties.temperature: not supported
                       |                     | max_tokens: must be positive
                       |                     | the temperature in Berlin
                       |                     | Function call is missing a thought_signature in functionCall parts.`;
  it.each(
    refusals
      .split('\n')
      .slice(1)
      .map((row) => row.split('|').map((cell) => cell.trim())),
  )('%j is read from a 400 for %j with %j', (said = '', param = '', text = '') => {
    const facts = { ...(param && { param }), ...(text && { text }) };
    const failure = classifyError(new Error('x'), { status: 400, ...facts });
    const isHint = said !== '' && !['signatures', 'toolChoice', 'effort'].includes(said);
    expect(refusalOf(failure)).toEqual(isHint ? said.split(' ') : said || undefined);
    expect(failure.cause).toMatchObject({ refusedParameter: said === 'toolChoice' ? said : undefined });
    expect(JSON.stringify(failure)).not.toContain('this model');
  });

  it.each([429, 403, 500, undefined])('takes a %s for no such refusal', (status) => {
    expect(refusalOf(classifyError(new Error('x'), { status, param: 'temperature' }))).toBeUndefined();
  });

  it('leaves a conversation that is too long what it is', () => {
    const text = 'prompt is too long; `temperature` is deprecated';
    const failure = classifyError(new Error('x'), { status: 400, text });
    expect([failure.code, refusalOf(failure)]).toEqual(['context_length_exceeded', undefined]);
  });
});
