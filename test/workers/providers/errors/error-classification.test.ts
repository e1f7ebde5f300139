import { describe, expect, it } from 'vitest';
import { Failure, type FailureCode } from '../../../../shared/failures.js';
import { isMendable } from '../../../../shared/protocol/attempts.js';
import {
  callErrorOf,
  classifyError,
  describeFailure,
  ProviderCallError,
  providerErrorOf,
  refusesCredentials,
} from '../../../../workers/providers/errors/error-classification.js';

type Facts = Parameters<typeof classifyError>[1];
const classify = (facts: Facts, nowMs?: number) => classifyError(new Error('x'), facts, nowMs);
/** A detail of Google's errors. */
const detail = (type: string, fields: object) => ({
  ...{ '@type': `type.googleapis.com/google.rpc.${type}` },
  ...fields,
});
const retryInfo = (retryDelay: unknown) => detail('RetryInfo', { retryDelay });
const quota = (violations: unknown) => detail('QuotaFailure', { violations });

describe('an answer is classified by its status and words', () => {
  it.each<[FailureCode, statuses: (number | undefined)[], word?: string]>([
    ['provider_rejected', [400, 401, 403, 404, 405, 410, 415, 422, 451, 499]],
    ['provider_error', [undefined, 200, 408, 409, 500, 501, 502, 503, 504, 529]],
    ['provider_rate_limited', [429]],
    ['context_length_exceeded', [413]],
    // Bedrock's exceptions say more than their status.
    ['provider_error', [429], 'ModelNotReadyException'],
    ['provider_error', [424], 'ModelErrorException'],
    ['provider_rate_limited', [400], 'ThrottlingException'],
    ['context_length_exceeded', [400], 'context_length_exceeded'],
    ['content_blocked', [400], 'content_filter'],
    ['content_blocked', [400], 'content_policy_violation'],
    ['content_blocked', [400], 'invalid_prompt'],
    // Of llama.cpp.
    ['context_length_exceeded', [400, 500], 'exceed_context_size_error'],
    ['provider_rate_limited', [undefined], 'rate_limit_error'],
    ['provider_rejected', [200], 'invalid_request_error'],
    ['provider_error', [undefined], 'overloaded_error'],
    ['provider_error', [undefined], '__proto__'],
  ])('%s: %j %s', (code, statuses, word) => {
    const retryable = code === 'provider_error' || code === 'provider_rate_limited';
    for (const status of statuses)
      expect(classify({ status, words: [word, 'other_word'] })).toMatchObject({ code, retryable });
  });

  it.each<[isOurs: boolean, statuses: (number | undefined)[], word?: string]>([
    [true, [401, 403]],
    [true, [403], 'AccessDeniedException'],
    [true, [400], 'ExpiredTokenException'],
    [true, [undefined], 'authentication_error'],
    [true, [200], 'permission_error'],
    [false, [400, 404, 429, 500, undefined]],
    [false, [400], 'ValidationException'],
    [false, [200], 'invalid_request_error'],
  ])('whether it refuses our credentials: %s for %j %s', (isOurs, statuses, word) => {
    for (const status of statuses)
      expect(refusesCredentials(classify({ status, words: [word] }))).toBe(isOurs);
    expect(refusesCredentials(new Failure('provider_rejected'))).toBe(false);
  });
});

describe('the time to wait', () => {
  const nowMs = Date.parse('2026-11-20T12:00:00Z');

  it.each<[headers: Record<string, string>, details: unknown, ms: number | undefined]>([
    [{ 'retry-after': '3' }, undefined, 3000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 12:01:00 GMT' }, undefined, 60_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 11:00:00 GMT' }, undefined, 0],
    [{ 'retry-after': '3', 'retry-after-ms': '250' }, undefined, 250],
    [{ 'retry-after': '' }, undefined, undefined],
    [{ 'retry-after': 'soon' }, undefined, undefined],
    [{ 'retry-after': '-1' }, undefined, undefined],
    [{ 'retry-after': 'NaN' }, undefined, undefined],
    [{ 'retry-after': '9'.repeat(400) }, undefined, undefined],
    [{}, [retryInfo('34s')], 34_000],
    [{}, [{ '@type': 'x' }, null, retryInfo('2.5001s')], 2501],
    [{ 'retry-after': '3' }, [retryInfo('34s')], 3000],
    [{}, [retryInfo('0s')], 0],
    [{}, [retryInfo('-1s')], undefined],
    [{}, [retryInfo('soon')], undefined],
    [{}, [retryInfo(34)], undefined],
    [{}, [{ retryDelay: '34s' }], undefined],
    [{}, '34s', undefined],
  ])('is read from the headers %j and the details %j: %s ms', (headers, details, ms) => {
    const waitOf = (status: number) =>
      classify({ status, details, header: (name) => headers[name] }, nowMs).facts.retryAfterMs;
    // What was refused is never to be tried again.
    expect([429, 503, 400].map(waitOf)).toEqual([ms, ms, undefined]);
  });
});

describe('the text of a refusal', () => {
  const behind = 'The model returned the following errors:';
  const noTools =
    "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
  const codes = new Map<string, FailureCode>([
    ['too long', 'context_length_exceeded'],
    ['blocked', 'content_blocked'],
    ['spent', 'provider_error'],
    ['failed', 'provider_error'],
  ]);
  /**
   * A row: the meaning, with the status if that is not 400, the parameter that the provider names, and its text. The
   * part that is kept stands in «».
   */
  const texts = `
    Too long, in the words of Anthropic, Bedrock (Claude, Llama, Nova, Cohere), Vertex AI, vLLM, SGLang, llama.cpp,
    Text Generation Inference, xAI, OpenAI, Groq, OpenRouter, Mistral, LM Studio, Copilot, MiniMax, Kimi and Ollama:
    too long          |                  | prompt is too long: 213462 tokens > «200000» maximum
    too long          |                  | input length and \`max_tokens\` exceed context limit: 188240 + 21333 > «200000», decrease input
    too long          |                  | Input is too long for requested model.
    too long          |                  | The input token count (12) exceeds the maximum number of tokens allowed («4»).
    too long          |                  | This model's maximum context length is «8192» tokens. However, you requested 9000 tokens.
    too long          |                  | This model's maximum context length is 99999999999 tokens.
    too long          |                  | maximum context length is my-secret
    too long          |                  | Number of input tokens exceeds maximum length. Please update the input.
    too long          |                  | too many tokens: number of tokens in the prompt cannot exceed 4081
    too long          |                  | 'max_tokens' is too large: 5. This model's maximum context length is «4».
    too long          |                  | The decoder prompt (length 9) is longer than the maximum model length of 4.
    too long          |                  | The prompt (total length 9) is too long to fit into the model.
    too long          |                  | The input (9 tokens) is longer than the model's context length («8» tokens).
    too long          |                  | Input length (9 tokens) exceeds the maximum allowed length (4 tokens).
    too long          |                  | the request exceeds the available context size. try increasing it
    too long          |                  | \`inputs\` tokens + \`max_new_tokens\` must be <= 4. Given: 9
    too long          |                  | This model's maximum prompt length is «131072» but the request contains 537812 tokens.
    too long          |                  | Unable to submit request because the input token count is 9 but model only supports up to 4.
    too long          |                  | Your input exceeds the context window of this model.
    too long          |                  | Please reduce the length of the messages or completion.
    too long          |                  | Prompt contains 9 tokens, too large for model with «32768» maximum context length
    too long          |                  | The number of tokens to keep from the initial prompt is greater than the context length.
    too long          |                  | prompt token count of 9 exceeds the limit of 4
    too long          |                  | invalid params, context window exceeds limit
    too long          |                  | Invalid request: Your request exceeded model token limit: 4 (requested: 9)
    too long          |                  | prompt too long; exceeded max context length by 5 tokens
    too long          |                  | prompt is too long; \`temperature\` is deprecated
    Spent credit, in the words of Anthropic, at the beginning alone:
    spent             |                  | You have reached your specified API usage limits. You will regain access on 2027-01-01.
    spent             |                  | You have reached your specified workspace API usage limits.
    spent             |                  | Your credit balance is too low to access the Anthropic API.
    spent             |                  | Your credit balance is too low.
                      |                  | «messages.0.content»: Your credit balance is too low
                      |                  | Unknown role: Your credit balance is too low
                      |                  | 'Your credit balance is too low' is no role
                      |                  | Your credit balance is too lower
    Other refusals, and words of one in what a text quotes of the request:
                      |                  | max_tokens exceeds the limit of 8192
    blocked           |                  | Output blocked by content filtering policy
    blocked           |                  | openai/o3 requires moderation on OpenAI. Your input was flagged for "sexual". No credits were charged.
                      |                  | Unknown role: "your input was flagged"
                      |                  | «max_tokens»: Field required
                      |                  | too many tokens, please wait before trying again
                      |                  | Tool 'prompt is too long' not found in provided tools
                      |                  | Error while downloading https://a.example/input is too long
                      |                  | {"message": "blocked by content filtering policy"}
    Parts of the request that a call can do without, or that the caller has to mend:
    temperature       | «temperature»    | 400 Unsupported value: 'temperature' does not support 0.2 with this model.
    reasoningEffort   | «reasoning_effort» | Unsupported value: 'reasoning_effort' does not support 'max'.
    parallelToolCalls | «parallel_tool_calls» |
    verbosity         | «verbosity»      |
    presencePenalty   | «presence_penalty» |
    seed              | «seed»           |
    verbosity         |                  | Unrecognized request argument supplied: verbosity
    temperature       |                  | \`temperature\` is deprecated for this model.
    temperature topP  |                  | \`temperature\` and \`top_p\` cannot both be specified for this model.
    reasoningEffort   |                  | This model does not support the effort parameter
    parallelToolCalls |                  | «tool_choice».disable_parallel_tool_use: Extra inputs are not permitted
    topP              |                  | ${behind} \`top_p\` is deprecated for this model.
    reasoningEffort   |                  | ${behind} This model does not support the effort parameter
    reasoningEffort   |                  | Thinking level is not supported for this model.
    thinking          |                  | «thinking.type»: adaptive thinking is not supported on this model
    topK              |                  | \`top_k\` is deprecated for this model.
    frequencyPenalty presencePenalty |    | Penalty is not enabled for this model
    temperature       |                  | This model doesn't support the temperature field. Remove it and try again.
    signatures        |                  | «messages.1.content.0»: Invalid \`signature\` in \`thinking\` block
    signatures        |                  | «messages.1.content.2»: Invalid \`data\` in \`redacted_thinking\` block
    signatures        |                  | ${behind} «messages.1.content.0.thinking.signature»: Field required
    signatures        |                  | Thought signature is not valid.
    signatures        |                  | Corrupted thought signature.
    signatures        |                  | This model doesn't support the reasoningContent.reasoningText.signature field.
    signatures        |                  | The encrypted content gAAA...DQ== could not be verified.
    signatures        |                  | \`encrypted_content\` was not issued to this caller
    encryptedReasoning | «include»       | Encrypted content is not supported with this model.
    reasoningContent  |                  | The \`reasoning_content\` in the thinking mode must be passed back to the API.
    summary           | «reasoning.summary» | Your organization must be verified to generate reasoning summaries.
    reasoningContent  |                  | The reasoning_content in the thinking mode must be passed back to the API.
    cap               |                  | The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.
    cap               |                  | «max_tokens»: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022
    stream            | stream           | Your organization must be verified to stream this model. Please go to: https://platform.example
    stream            |                  | This model doesn't support tool use in streaming mode.
    stream            |                  | The model is unsupported for streaming.
    reasoningEffort   | «reasoning.effort» | Unsupported parameter: 'reasoning.effort' is not supported with this model.
    verbosity         | «text.verbosity» | Unsupported value: 'text.verbosity' does not support 'high' with this model.
    laterSystem       |                  | «messages»: role 'system' is not supported on this model
    laterSystem       |                  | «messages»: Unexpected role "system". The Messages API accepts a top-level \`system\` parameter
    cache             |                  | «system.0».cache_control: Extra inputs are not permitted
    cache             |                  | Malformed input request: #/toolConfig/tools/3: extraneous key [cachePoint] is not permitted
    cache             |                  | You invoked an unsupported model or your request did not allow prompt caching.
    toolChoice        | «tool_choice»    |
    toolChoice        |                  | «tool_choice»: type "tool" and "any" are not supported for this model.
    toolChoice        |                  | ${behind} «tool_choice»: type "tool" and "any" are not supported for this model.
    toolChoice        |                  | Thinking may not be enabled when tool_choice forces tool use.
    toolChoice        |                  | This model doesn't support the toolConfig.toolChoice.any field.
    effort            | «reasoning_effort» | ${noTools}
    effort            | «tools»          | ${noTools}
    reasoningEffort   |                  | ${noTools}
    reasoningEffort   | «reasoning_effort» | Function tools with reasoning_effort are not supported for gpt-5.4. Please use /v1/responses instead.
                      | «messages[0].content[0].image_url.url» | ${noTools}
                      | «tools[0].function.description» | ${noTools}
                      |                  |
                      | «messages»       |
                      | «tools[0].function.parameters» | 'temperature' is not supported
                      |                  | «tools.0.custom.input_schema.properties.temperature»: not supported
                      |                  | * GenerateContentRequest.«tools[0].function_declarations[0].parameters.properties»[seed].enum[0]: cannot be empty
                      |                  | «max_tokens»: must be positive
                      |                  | the temperature in Berlin
                      |                  | Function call is missing a thought_signature in functionCall parts.
    The same in what a text quotes, or for another parameter:
                      |                  | Error while downloading https://a.example/set reasoning_effort to 'none'.
                      |                  | Error while downloading https://a.example/\`temperature\` is deprecated for this model.
                      |                  | Tool 'temperature is not supported' not found in provided tools
                      |                  | Invalid value: "This model does not support the effort parameter".
                      |                  | Unknown tool “top_p is not supported”
                      |                  | Duplicate value 'x': \`verbosity\` is deprecated for this model.
                      |                  | data:image/png;base64,temperature is not supported
                      |                  | Failed to parse {"temperature": "is not supported"}
                      |                  | Cannot read the text below↵temperature is not supported
                      |                  | «messages.0.content»: temperature is not supported
                      |                  | ${behind} «tools.0.custom.name»: seed is not allowed
                      |                  | \`it\` quotes: Invalid \`signature\` in \`thinking\` block
                      |                  | Value 'x': tool_choice may not force a tool
                      |                  | Unknown tool "The encrypted content x could not be verified."
                      | «messages»       | The encrypted content x could not be verified.
                      |                  | \`it\` quotes: role 'system' is not supported on this model
                      |                  | «tools.0.custom.input_schema.properties».cache_control: Extra inputs are not permitted
                      | «tools»          | Error while downloading https://a.example/set reasoning_effort to 'none'.
                      | temperature_of_x | temperature is not supported
                      | «tools[0].function.parameters» | Invalid schema for function 'secret'
                      | secret           | Invalid schema for function 'secret'
                      | tools_secret[0]  | Invalid schema for function 'secret'
    Places, which end before the first name that may be of the caller:
                      |                  | «tools.0.custom.input_schema»: JSON schema is invalid. It must match JSON Schema draft 2020-12
                      |                  | ${behind} «tools.0.custom.input_schema.properties»: Property keys should match pattern '^x'
                      |                  | «tools.0.custom.input_schema.properties».secret.type: Input should be 'object'
                      |                  | «tools.0.custom.input_schema.properties».4111111111111111: no
                      |                  | «output_config.format.schema»: For 'object' type, no
                      |                  | «messages.1.content.0.text»: Field required
                      |                  | The value at «toolConfig.tools.0.toolSpec.inputSchema.json.type» must be one of the following: object.
                      |                  | * GenerateContentRequest.«tools[0].function_declarations[0].parameters.properties»: should be non-empty
                      |                  | Invalid value at '«contents[0].parts»' (oneof), "secret"
                      |                  | Please look again at the messages.
                      |                  | Unknown name "secret" at 'tools.0.custom.input_schema'
                      |                  | See https://a.example/ at tools.0.custom.input_schema: no
                      |                  | secret.tools.0.custom.input_schema: no
    What counts behind a 403, too, and what counts for no error that is the provider's:
    cache 403         |                  | You invoked an unsupported model or your request did not allow prompt caching.
    blocked 403       |                  | Your chosen model requires moderation and your input was flagged
    403               |                  | You may not use this model
    failed 500        |                  | prompt is too long
    failed 500        |                  | Output blocked by content filtering policy`;

  it.each(
    texts
      .split('\n')
      .filter((row) => row.includes('|'))
      .map((row) => row.split('|').map((cell) => cell.trim().replace('↵', '\n'))),
  )('says %j, with the parameter %j: %s', (meaning = '', param = '', text = '') => {
    const [, says = '', digits = '400'] = /^(.*?) ?(\d+)?$/.exec(meaning) ?? [];
    const status = Number(digits);
    const [, kept] = /«(.*)»/.exec(param + text) ?? [];
    const [given, named] = [text, param].map((marked) => marked.replace(/[«»]/g, ''));
    const failure = classify({ status, param: named, text: given });
    const { refusal, place } = failure.cause as ProviderCallError;
    const code = codes.get(says);
    expect([failure.code, [refusal ?? []].flat().join(' ')]).toEqual(
      code ? [code, ''] : ['provider_rejected', says],
    );
    expect(failure.facts.contextTokens ?? place).toBe(says === 'too long' && kept ? Number(kept) : kept);
    expect(describeFailure(failure)).toMatchObject({ code: failure.code, place });
    expect(providerErrorOf(failure)).toEqual({ status, type: 'Error', ...(place && { place }) });
    expect(JSON.stringify(failure)).not.toMatch(/secret|this model|prompt|inputs?\b/);
  });

  it('has the code of OpenAI for reasoning that it cannot read -> that is enough, whatever the text', () => {
    const words = ['invalid_encrypted_content'];
    const { cause } = classify({ status: 400, words, param: 'input', text: 'no' });
    expect(cause).toMatchObject({ refusal: 'signatures' });
  });

  it.each([429, 403, 500, undefined])('counts only behind a 400: %s', (status) => {
    const failure = classify({ status, param: 'temperature', text: 'prompt is too long' });
    expect(failure.cause).toMatchObject({ refusal: undefined, place: undefined });
  });

  it('has the limit behind a code, too', () => {
    const text = 'Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 9.';
    const tokens = (word?: string) => classify({ status: 400, words: [word], text }).facts.contextTokens;
    expect([tokens('context_length_exceeded'), tokens()]).toEqual([272_000, undefined]);
  });
});

describe('the cause', () => {
  it('has name, status and word of the error, and nothing it quotes', () => {
    const secret = 'sk-secret at https://provider.example';
    const error = new TypeError(secret, { cause: Object.assign(new Error(secret), { code: 'ECONNRESET' }) });
    const failure = classifyError(error, { status: 500, words: [secret] });
    expect(failure.facts.cause).toEqual(new ProviderCallError('TypeError', 500, 'ECONNRESET'));
    expect(JSON.stringify(failure) + String((failure.cause as Error).stack)).not.toContain('secret');
  });

  it('a connection that has not come about in time, at any of its addresses -> is of the account', () => {
    const cause = Object.assign(new Error('x'), { code: 'ETIMEDOUT' });
    const error = Object.assign(new Error('x', { cause }), { code: 'UND_ERR_CONNECT_TIMEOUT' });
    const unreachable = { isUnreachable: true, concernsAccount: true };
    expect(callErrorOf(classifyError(error, {}))).toMatchObject(unreachable);
  });

  // Behind a 200 the SDK's error has the code of the body, too.
  it.each<[number | undefined, object]>([
    [400, {}],
    [500, {}],
    [undefined, { code: 'ENOTFOUND' }],
  ])('an answer with %s that tells of a connection of its own -> can be reached', (status, own) => {
    const words = ['ENOTFOUND', 'fetch_error'];
    const { cause } = classifyError(Object.assign(new Error('x'), own), { status, words });
    const { isUnreachable, concernsAccount, word } = cause as ProviderCallError;
    expect([isUnreachable, concernsAccount, word]).toEqual([false, false, 'fetch_error']);
  });
});

describe('an error of the account', () => {
  const causeOf = (...facts: Facts[]) =>
    callErrorOf(classifyError(new Error('x'), Object.assign({}, ...facts)));

  it.each<[given: Facts, isOfModel: boolean]>([
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

  /** The call is not made again here, but another provider may be asked. */
  function expectNoRetry(facts: Facts, cause: object): void {
    const failure = classify(facts);
    expect(failure).toMatchObject({ code: 'provider_error', retryable: false, cause });
    expect(failure.facts.retryAfterMs).toBeUndefined();
    expect(isMendable({ ...failure, provider: 'openai' })).toBe(true);
  }

  it.each<[status: number | undefined, ...words: string[]]>([
    [429, 'insufficient_quota'],
    [undefined, 'insufficient_quota', 'insufficient_quota'],
    [429, 'credit_balance_exhausted', 'rate_limit_error'],
    [429, 'enforced_spend_limit_reached', 'rate_limit_error'],
    [429, 'contract_spend_limit_reached', 'rate_limit_error'],
    [429, 'linked_organization_spend_limit_reached', 'rate_limit_error'],
    [403, 'linked_organization_billing_unavailable'],
    [429, 'billing_not_active', 'billing_not_active'],
    [undefined, 'project_spend_limit_exceeded'],
    [200, 'organization_spend_limit_exceeded'],
    [429, 'organization_usage_limit_exceeded'],
    [402, 'billing_error'],
  ])('%s %s -> the credit is spent: not retried here, and another may be asked', (status, ...words) => {
    expectNoRetry({ status, words, header: () => '3' }, { isOutOfCredit: true });
  });

  it.each<[string, Facts]>([
    ['a 402', { status: 402, header: () => '3' }],
    ['a 402 with a number as its code', { status: 402, words: ['402'], text: 'needs more credits' }],
    ['a text', { status: 400, words: ['invalid_request_error'], text: 'Your credit balance is too low' }],
    ['a text in a stream', { words: ['invalid_request_error'], text: 'Your credit balance is too low' }],
  ])('%s says that credit is spent -> maybe: not retried here, and another may be asked', (_, facts) => {
    expectNoRetry(facts, { isOutOfCredit: false, seemsOutOfCredit: true });
  });

  it.each<[number, string, text: string]>([
    [429, 'rate_limit_exceeded', 'Your credit balance is too low: insufficient_quota'],
    [400, 'invalid_request_error', 'What insufficient_quota and billing_error mean'],
    [500, 'api_error', 'Your credit balance is too low'],
  ])('%s %s, whose text is about credit -> it is not spent', (status, word, text) => {
    const cause = causeOf({ status, words: [word], text });
    expect([cause?.isOutOfCredit, cause?.seemsOutOfCredit]).toEqual([false, undefined]);
  });
});

describe("a quota of Google's", () => {
  const quotaIds = ['TokensPerMinute', 'GenerateRequestsPerDayPerProjectPerModel'];
  const ofDay = quota(quotaIds.map((quotaId) => ({ quotaId })));

  it.each<[status: number, details: unknown, retryable: boolean, waitMs?: number]>([
    [429, [ofDay], false, 300_000],
    [429, [ofDay, retryInfo('36s')], true, 36_000],
    [429, [quota([{ quotaId: 'GenerateRequestsPerMinute' }])], true],
    [429, [quota([null, 'PerDay', { quotaId: ['no'] }, {}])], true],
    [429, [quota('PerDay'), quota(null)], true],
    [500, [ofDay], true],
  ])('%s with %j -> retryable: %s, after %s ms', (status, details, retryable, waitMs) => {
    const failure = classify({ status, details });
    expect([failure.retryable, failure.facts.retryAfterMs]).toEqual([retryable, waitMs]);
  });
});

it('Google’s details that are nested as deep as their body allows -> as without them', () => {
  const deep: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
  const limited = { code: 'provider_rate_limited', retryable: true };
  for (const details of [[quota([{ quotaId: deep }])], [{ '@type': deep }], deep])
    expect(classify({ status: 429, details })).toMatchObject(limited);
  const details = [{ fieldViolations: [{ field: deep }] }];
  expect(classify({ status: 400, details })).toMatchObject({ code: 'provider_rejected' });
});

describe('the advice to operators', () => {
  const profile = 'name an inference profile in place of the model';
  it.each<[facts: Facts, advice: string | undefined]>([
    [{ text: 'Invocation of model ID a.b-v1:0 with on-demand throughput isn’t supported. Retry' }, profile],
    [{ text: "The provided model doesn't support on-demand throughput." }, profile],
    [{ text: 'Unknown tool "on-demand throughput"' }, undefined],
    [{ text: 'on-demand throughput', advice: 'SOME_VARIABLE=x' }, 'SOME_VARIABLE=x'],
  ])('%j -> %s', (facts, advice) => {
    expect(describeFailure(classify({ status: 400, ...facts }))).toMatchObject({ advice });
  });
});
