import { randomUUID } from 'node:crypto';
import { claudeErrors } from '../claude.js';
import { dotted, type ErrorBodies, jsonRefusal, type Refusal } from '../wire-format.js';

/** An error in Anthropic's format (https://docs.anthropic.com/en/api/errors), its type chosen by the status. */
export function anthropicError(status: number, message: string): Refusal {
  const requestId = `req_sim_${randomUUID()}`;
  const body = { ...anthropicErrorBody(errorType(status), message), request_id: requestId };
  return jsonRefusal(status, body, { 'request-id': requestId });
}

/** The error for a violated rule. */
export const invalid = (message: string): Refusal => anthropicError(400, message);

/** The body of an error, also within a stream. */
export function anthropicErrorBody(type: string, message: string): { type: string; error: object } {
  return { type: 'error', error: { type, message } };
}

const kinds: Record<number, [type: string, message: string]> = {
  400: ['invalid_request_error', 'The request was rejected by the simulator as asked.'],
  401: ['authentication_error', 'invalid x-api-key'],
  402: ['billing_error', 'Your credit balance is too low to access the Anthropic API.'],
  403: ['permission_error', 'Your API key does not have permission to use the specified resource.'],
  404: ['not_found_error', 'model: simulated'],
  408: ['timeout_error', 'Request timed out'],
  413: ['request_too_large', 'Request exceeds the maximum size'],
  422: ['invalid_request_error', 'The request could not be processed.'],
  429: ['rate_limit_error', "This request would exceed your organization's rate limit."],
  500: ['api_error', 'Internal server error'],
  504: ['timeout_error', 'Request timed out'],
  529: ['overloaded_error', 'Overloaded'],
};

function errorType(status: number): string {
  return kinds[status]?.[0] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

function spent(error_code: string): Refusal {
  const error = { type: 'rate_limit_error', message: 'A spend limit is reached.', details: { error_code } };
  return jsonRefusal(429, { type: 'error', error });
}

/** Anthropic's errors. */
export const anthropicErrors: ErrorBodies = {
  wrong: (place, expected) => invalid(`${dotted(place)}: expected ${expected}`),
  contentType: (received) => anthropicError(400, `Content-Type: expected application/json, got ${received}`),
  json: () => anthropicError(400, 'The request body is not valid JSON'),
  model: (model) => anthropicError(404, `model: ${model}`),
  // The text of a gateway in front of Anthropic, in Anthropic's envelope: https://github.com/winfunc/opcode/issues/358
  denied: (model) => anthropicError(401, `key not allowed to access model. Tried to access ${model}`),
  status: (status) => anthropicError(status, kinds[status]?.[1] ?? 'The simulator failed as asked.'),
  tooLong: (tokens, maxTokens) => invalid(`prompt is too long: ${tokens} tokens > ${maxTokens} maximum`),
  notReady: () => anthropicError(529, 'Overloaded'),
  quotas: [
    // Codes of `resources/shared.d.ts` of Anthropic's SDK, without `retry-after`.
    spent('enforced_spend_limit_reached'),
    spent('contract_spend_limit_reached'),
    spent('linked_organization_spend_limit_reached'),
    spent('linked_organization_billing_unavailable'),
    anthropicError(402, 'Your organization cannot be billed.'),
    // Limits of one's own, and low credit: https://github.com/anthropics/claude-code/issues/2127 and 66314
    invalid(
      'You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.',
    ),
    invalid('You have reached your specified workspace API usage limits.'),
    invalid('Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.'),
  ],
  ...claudeErrors(invalid),
};
