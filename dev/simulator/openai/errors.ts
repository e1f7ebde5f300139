import { bracketed, type ErrorBodies, jsonRefusal, type Refusal, snakeCase } from '../wire-format.js';

interface ErrorFields {
  type?: string;
  param?: string;
  code?: string;
}

/** An error in OpenAI's format (https://platform.openai.com/docs/guides/error-codes). */
export function openAiError(status: number, message: string, fields: ErrorFields = {}): Refusal {
  return jsonRefusal(status, openAiErrorBody(message, fields));
}

/** The body of an error, also within a stream. */
export function openAiErrorBody(message: string, fields: ErrorFields = {}): object {
  const { type = 'invalid_request_error', param = null, code = null } = fields;
  return { error: { message, type, param, code } };
}

/** The error for a value that breaks a rule. */
export const invalid = (message: string, param: string, code?: string): Refusal =>
  openAiError(400, message, { param, ...(code && { code }) });

const serverError = { type: 'server_error' };
const modelNotFound = { code: 'model_not_found' };
const byStatus: Record<number, [message: string, fields: ErrorFields]> = {
  400: ['The request was rejected by the simulator as asked.', {}],
  401: ['Incorrect API key provided: sim-****.', { code: 'invalid_api_key' }],
  403: ['Country, region, or territory not supported', { code: 'unsupported_country_region_territory' }],
  404: ['The model `simulated` does not exist or you do not have access to it.', modelNotFound],
  408: ['Request timed out.', { type: 'timeout_error', code: 'timeout' }],
  413: ['The request body is too large.', { code: 'request_too_large' }],
  422: ['The request could not be processed.', { code: 'unprocessable_entity' }],
  429: ['Rate limit reached: Limit 500, Used 500.', { type: 'requests', code: 'rate_limit_exceeded' }],
  500: ['The server had an error while processing your request.', serverError],
  502: ['Bad gateway.', serverError],
  503: ['The engine is currently overloaded, please try again later', serverError],
  504: ['The server had an error while processing your request: gateway timeout.', serverError],
};

/** OpenAI's errors. */
export const openAiErrors: ErrorBodies = {
  wrong(place, expected) {
    const param = bracketed(place);
    return invalid(`${param}: expected ${expected}`, param);
  },
  contentType: (received) =>
    openAiError(400, `Unsupported content type: '${received}'.`, { code: 'unsupported_content_type' }),
  json: () => openAiError(400, 'We could not parse the JSON body of your request.'),
  model: (model) =>
    openAiError(404, `The model \`${model}\` does not exist or you do not have access to it.`, modelNotFound),
  // The answer of LiteLLM's proxy: https://github.com/winfunc/opcode/issues/358
  denied(model) {
    const fields = { type: 'key_model_access_denied', param: 'model', code: '401' };
    return openAiError(401, `key not allowed to access model. Tried to access ${model}`, fields);
  },
  status(status) {
    const [message = '', fields] = byStatus[status] ?? byStatus[status < 500 ? 400 : 500] ?? [];
    return openAiError(status, message, fields);
  },
  tooLong: (tokens, maxTokens) =>
    invalid(
      `This model's maximum context length is ${maxTokens} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
      'messages',
      'context_length_exceeded',
    ),
  notReady: () => openAiError(503, 'That model is currently overloaded with other requests.', serverError),
  quotas: [
    // The second comes with the type of the first: https://github.com/vercel/ai/issues/21345
    spent('insufficient_quota', 'You exceeded your current quota.'),
    spent('credit_balance_exhausted', 'Your organization has no API credits remaining.'),
    // Codes of `resources/beta/agents/agents.d.ts` of OpenAI's SDK.
    spent('billing_not_active', 'Your account is not active.'),
    spent('project_spend_limit_exceeded', 'The project has reached its enforced spend limit.'),
    spent('organization_spend_limit_exceeded', 'The organization has reached its enforced spend limit.'),
    spent('organization_usage_limit_exceeded', 'The organization has reached its usage limit.'),
    // OpenRouter's answer, where it is about the request: https://github.com/can1357/oh-my-pi/issues/9569
    jsonRefusal(402, { error: { message: 'It requires more credits, or fewer max_tokens.', code: 402 } }),
  ],
  hint: refuseHint,
  // DeepSeek's: https://github.com/earendil-works/pi/issues/3636
  lostReasoning: () =>
    openAiError(400, 'The `reasoning_content` in the thinking mode must be passed back to the API.'),
  // From gpt-5.4 on: https://github.com/openai/openai-openapi/issues/541. Some have no `none`: BerriAI/litellm#34569.
  effort({ tools, reasoningEffort }, model) {
    if (reasoningEffort === 'none') return refuseNone('reasoning_effort');
    if (tools === undefined) return undefined;
    const how = "To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
    const why = `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions.`;
    return invalid(`${why} ${how}`, 'reasoning_effort');
  },
};

function spent(code: string, message: string): Refusal {
  return openAiError(429, message, { type: 'insufficient_quota', code });
}

/** The error of a model that always thinks, for the effort `none`. */
export const refuseNone = (param: string): Refusal =>
  unsupportedValue(param, "'none' with this model. Supported values are: 'low', 'medium' and 'high'.");

const unsupportedValue = (param: string, why: string): Refusal =>
  invalid(`Unsupported value: '${param}' does not support ${why}`, param, 'unsupported_value');

function refuseHint(name: string, value: unknown): Refusal {
  const param = snakeCase(name);
  if (name === 'temperature' || name === 'topP') {
    return unsupportedValue(param, `${value} with this model. Only the default (1) value is supported.`);
  }
  const message = `Unsupported parameter: '${param}' is not supported with this model.`;
  return invalid(message, param, 'unsupported_parameter');
}
