import { describe, expect, it } from 'vitest';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import { isMendable } from '../../../shared/protocol/attempts.js';
import {
  callErrorOf,
  classifyError,
  describeFailure,
  ProviderCallError,
  providerErrorOf,
  refusesCredentials,
} from '../../../workers/providers/error-classification.js';

const code = (status: number | undefined, ...words: string[]) =>
  classifyError(new Error('x'), { status, words }).code;
const nowMs = Date.parse('2026-11-20T12:00:00Z');
const retryAfterMs = (headers: Record<string, string>, status = 429) =>
  classifyError(new Error('x'), { status, header: (name) => headers[name] }, nowMs).facts.retryAfterMs;

describe('classifyError', () => {
  const refusals = [400, 401, 402, 403, 404, 405, 410, 415, 422, 451, 499];
  const passing = [undefined, 200, 408, 409, 500, 501, 502, 503, 504, 529];
  it.each<[number | undefined, FailureCode, boolean]>([
    ...refusals.map((status): [number, FailureCode, boolean] => [status, 'provider_rejected', false]),
    ...passing.map((status): [number | undefined, FailureCode, boolean] => [status, 'provider_error', true]),
    [429, 'provider_rate_limited', true],
    [413, 'context_length_exceeded', false],
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

  // Of Anthropic, Bedrock (Claude, Llama, Nova, Cohere), Vertex AI, vLLM, SGLang, llama.cpp, Text Generation Inference,
  // xAI, OpenAI, Groq, OpenRouter, Mistral, LM Studio, Copilot, MiniMax, Kimi and Ollama.
  it.each<[string, tokens?: number]>([
    ['prompt is too long: 213462 tokens > 200000 maximum', 200_000],
    ['input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input', 200_000],
    ['Input is too long for requested model.'],
    ['The input token count (12) exceeds the maximum number of tokens allowed (4).', 4],
    ["This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", 8192],
    ["This model's maximum context length is 99999999999 tokens."],
    ['maximum context length is my-secret'],
    ['Number of input tokens exceeds maximum length. Please update the input.'],
    ['too many tokens: number of tokens in the prompt cannot exceed 4081'],
    ["'max_tokens' is too large: 5. This model's maximum context length is 4.", 4],
    ['The decoder prompt (length 9) is longer than the maximum model length of 4.'],
    ['The prompt (total length 9) is too long to fit into the model.'],
    ["The input (9 tokens) is longer than the model's context length (8 tokens).", 8],
    ['Input length (9 tokens) exceeds the maximum allowed length (4 tokens).'],
    ['the request exceeds the available context size. try increasing it'],
    ['`inputs` tokens + `max_new_tokens` must be <= 4. Given: 9'],
    ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072],
    ['Unable to submit request because the input token count is 9 but model only supports up to 4.'],
    ['Your input exceeds the context window of this model.'],
    ['Please reduce the length of the messages or completion.'],
    ['Prompt contains 9 tokens, too large for model with 32768 maximum context length', 32_768],
    ['The number of tokens to keep from the initial prompt is greater than the context length.'],
    ['prompt token count of 9 exceeds the limit of 4'],
    ['invalid params, context window exceeds limit'],
    ['Invalid request: Your request exceeded model token limit: 4 (requested: 9)'],
    ['prompt too long; exceeded max context length by 5 tokens'],
  ])('takes %j for a conversation that is too long, and reads the limit alone', (text, tokens) => {
    const failure = classifyError(new Error('x'), { status: 400, text });
    expect([failure.code, failure.facts.contextTokens]).toEqual(['context_length_exceeded', tokens]);
    expect(JSON.stringify(failure)).not.toMatch(/secret|prompt|input/i);
    expect(classifyError(new Error('x'), { status: 500, text }).code).toBe('provider_error');
  });

  it('reads the limit behind a code, too, and of no other refusal', () => {
    const text = 'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 9.';
    const tokens = (words: string[]) =>
      classifyError(new Error('x'), { status: 400, words, text }).facts.contextTokens;
    expect([tokens(['context_length_exceeded']), tokens([])]).toEqual([272_000, undefined]);
  });

  it.each<[string, FailureCode]>([
    ['max_tokens exceeds the limit of 8192', 'provider_rejected'],
    ['Output blocked by content filtering policy', 'content_blocked'],
    ['max_tokens: Field required', 'provider_rejected'],
    ['too many tokens, please wait before trying again', 'provider_rejected'],
    ["Tool 'prompt is too long' not found in provided tools", 'provider_rejected'],
    ['Error while downloading https://a.example/input is too long', 'provider_rejected'],
    ['{"message": "blocked by content filtering policy"}', 'provider_rejected'],
  ])('tells other refusals apart where only the text does: %s', (text, expected) => {
    expect(classifyError(new Error('x'), { status: 400, text }).code).toBe(expected);
    expect(classifyError(new Error('x'), { status: 500, text }).code).toBe('provider_error');
  });

  it.each([400, 500])("takes llama.cpp's %s for a conversation that is too long", (status) => {
    expect(code(status, 'exceed_context_size_error')).toBe('context_length_exceeded');
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

  const retryInfo = (retryDelay: unknown) => ({
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retryDelay,
  });
  it.each<[unknown, string | undefined, number | undefined]>([
    [[retryInfo('34s')], undefined, 34_000],
    [[{ '@type': 'x' }, null, retryInfo('2.5001s')], undefined, 2501],
    [[retryInfo('34s')], '3', 3000],
    [[retryInfo('0s')], undefined, 0],
    [[retryInfo('-1s')], undefined, undefined],
    [[retryInfo('soon')], undefined, undefined],
    [[retryInfo(34)], undefined, undefined],
    [[{ retryDelay: '34s' }], undefined, undefined],
    ['34s', undefined, undefined],
  ])('reads from the details %j, behind a Retry-After of %s: %s ms', (details, header, expected) => {
    const read = (name: string) => (name === 'retry-after' ? header : undefined);
    const failure = classifyError(new Error('x'), { status: 429, details, header: read });
    expect(failure.facts.retryAfterMs).toBe(expected);
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

describe('an error of the account', () => {
  const causeOf = (...facts: Parameters<typeof classifyError>[1][]) =>
    callErrorOf(classifyError(new Error('x'), Object.assign({}, ...facts)));

  it.each<[given: Parameters<typeof classifyError>[1], isOfModel: boolean]>([
    [{ status: 401, text: 'Incorrect API key provided: sk-x.' }, false],
    [{ status: 401, text: 'Not authorized for gpt-x.' }, true],
    [{ status: 401, param: 'model' }, true],
    [{ status: 403, text: 'Not authorized for gpt-x.' }, false],
    [{ status: 403, words: ['ExpiredTokenException'], text: 'Not for gpt-x.' }, false],
  ])('%j for gpt-x -> is about the model alone: %s', (facts, isOfModel) => {
    const cause = causeOf({ model: 'gpt-x' }, facts);
    expect(cause?.namesModel ?? false).toBe(isOfModel);
    expect(cause?.concernsAccount).toBe(!isOfModel && (facts.status === 401 || facts.words !== undefined));
    expect(JSON.stringify(cause)).not.toContain('gpt-x');
  });

  it.each<[status: number | undefined, ...words: string[]]>([
    [429, 'insufficient_quota'],
    [undefined, 'insufficient_quota', 'insufficient_quota'],
    [429, 'credit_balance_exhausted', 'rate_limit_error'],
    [429, 'enforced_spend_limit_reached', 'rate_limit_error'],
    [429, 'contract_spend_limit_reached', 'rate_limit_error'],
    [402, 'billing_error'],
  ])(
    '%s %s -> the credit is spent: not retried here, and another provider may be asked',
    (status, ...words) => {
      const header = () => '3';
      const failure = classifyError(new Error('x'), { status, words, header });
      expect(failure).toMatchObject({ code: 'provider_error', retryable: false });
      expect([failure.facts.retryAfterMs, callErrorOf(failure)?.isOutOfCredit]).toEqual([undefined, true]);
      expect(isMendable({ ...failure, provider: 'openai' })).toBe(true);
    },
  );

  it.each<[number, string]>([
    [429, 'rate_limit_exceeded'],
    [400, 'invalid_request_error'],
  ])('%s %s whose text is about credit -> it is not spent', (status, word) => {
    const text = 'Your credit balance is too low: insufficient_quota';
    expect(causeOf({ status, words: [word], text })?.isOutOfCredit).toBe(false);
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

describe('the refusal in an error', () => {
  const behind = 'The model returned the following errors:';
  const noTools =
    "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
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
    effort             | reasoning_effort    | ${noTools}
    effort             | tools               | ${noTools}
    reasoningEffort    |                     | ${noTools}
    reasoningEffort    | reasoning_effort    | Function tools with reasoning_effort are not supported for gpt-5.4. Please use /v1/responses instead.
                       | messages[0].content[0].image_url.url | ${noTools}
                       | tools[0].function.description | ${noTools}
                       |                     |
                       | messages            |
                       | tools[0].function.parameters | 'temperature' is not supported
                       |                     | tools.0.custom.input_schema.properties.temperature: not supported
                       |                     | * GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[seed].enum[0]: cannot be empty
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
    expect(callErrorOf(failure)?.refusal).toEqual(isHint ? said.split(' ') : said || undefined);
    expect(failure.cause).toMatchObject({ refusedParameter: said === 'toolChoice' ? said : undefined });
    expect(JSON.stringify(failure)).not.toContain('this model');
  });

  const cause = (text: string, param?: string) => {
    const { cause } = classifyError(new Error('x'), { status: 400, text, param });
    return cause as ProviderCallError;
  };

  /** Each has words of a refusal in what it quotes of a request. */
  const quoting = [
    "Error while downloading https://a.example/set reasoning_effort to 'none'.",
    'Error while downloading https://a.example/`temperature` is deprecated for this model.',
    "Tool 'temperature is not supported' not found in provided tools",
    'Invalid value: "This model does not support the effort parameter".',
    'Unknown tool “top_p is not supported”',
    "Duplicate value 'x': `verbosity` is deprecated for this model.",
    'data:image/png;base64,temperature is not supported',
    'Failed to parse {"temperature": "is not supported"}',
    'Cannot read the text below\ntemperature is not supported',
    'messages.0.content: temperature is not supported',
    'The model returned the following errors: tools.0.custom.name: seed is not allowed',
    '`it` quotes: Invalid `signature` in `thinking` block',
    "Value 'x': tool_choice may not force a tool",
  ];
  it.each(quoting)('takes nothing from what a text quotes: %s', (text) => {
    for (const param of [undefined, 'messages', 'tools', 'tools[0].function.parameters', 'temperature_of_x'])
      expect(cause(text, param).refusal).toBeUndefined();
  });

  const schema = 'tools.0.custom.input_schema';
  /** The place stands between angle brackets. */
  it.each([
    `<${schema}>: JSON schema is invalid. It must match JSON Schema draft 2020-12`,
    `${behind} <${schema}.properties>: Property keys should match pattern '^x'`,
    `<${schema}.properties>.secret.type: Input should be 'object'`,
    `<${schema}.properties>.4111111111111111: no`,
    "<output_config.format.schema>: For 'object' type, no",
    '<messages.1.content.0.text>: Field required',
    'The value at <toolConfig.tools.0.toolSpec.inputSchema.json.type> must be one of the following: object.',
    '* GenerateContentRequest.<tools[0].function_declarations[0].parameters.properties>: should be non-empty',
    'Invalid value at \'<contents[0].parts>\' (oneof), "secret"',
    'Please look again at the messages.',
    `Unknown name "secret" at '${schema}'`,
    `See https://a.example/ at ${schema}: no`,
    `secret.${schema}: no`,
  ])('the place that is refused is read, and no word besides: %s', (marked) => {
    const place = /<(.*)>/.exec(marked)?.[1];
    const failure = classifyError(new Error('x'), { status: 400, text: marked.replace(/[<>]/g, '') });
    expect(providerErrorOf(failure)).toEqual({ status: 400, type: 'Error', ...(place && { place }) });
    expect(describeFailure(failure)).toMatchObject({ code: 'provider_rejected', place });
  });

  it.each([
    ['tools[0].function.parameters', 'tools[0].function.parameters'],
    ['temperature', 'temperature'],
    ['secret', undefined],
    ['tools_secret[0]', undefined],
  ])('the parameter %s is refused -> the place is %s', (param, place) => {
    expect(cause("Invalid schema for function 'secret'", param).place).toBe(place);
  });

  it.each<[number | undefined, object]>([
    [400, {}],
    [500, {}],
    // Behind a 200; the SDK's error has the code of the body, too.
    [undefined, { code: 'ENOTFOUND' }],
  ])(
    'an answer with %s that tells of a connection of its own -> the provider can be reached',
    (status, own) => {
      const error = Object.assign(new Error('x'), own);
      const { cause } = classifyError(error, { status, words: ['ENOTFOUND', 'fetch_error'] });
      const { isUnreachable, concernsAccount, word } = cause as ProviderCallError;
      expect({ isUnreachable, concernsAccount, word }).toEqual({
        ...{ isUnreachable: false, concernsAccount: false, word: 'fetch_error' },
      });
    },
  );

  it.each([429, 403, 500, undefined])('takes a %s for no such refusal', (status) => {
    const failure = classifyError(new Error('x'), { status, param: 'temperature' });
    expect(callErrorOf(failure)?.refusal).toBeUndefined();
  });

  it('leaves a conversation that is too long what it is', () => {
    const text = 'prompt is too long; `temperature` is deprecated';
    const failure = classifyError(new Error('x'), { status: 400, text });
    expect([failure.code, callErrorOf(failure)?.refusal]).toEqual(['context_length_exceeded', undefined]);
  });
});
