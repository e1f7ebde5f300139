import { bracketed, type ErrorBodies, jsonRefusal, type Refusal, snakeCase } from '../wire-format.js';

const statusNames: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  413: 'INVALID_ARGUMENT',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** An error in Google's format (https://cloud.google.com/apis/design/errors), its name chosen by the status. */
export function vertexError(status: number, message: string, details?: object[]): Refusal {
  return jsonRefusal(status, vertexErrorBody(status, message, details));
}

/** The body of an error, also within a stream. */
export function vertexErrorBody(code: number, message: string, details?: object[]): object {
  return { error: { code, message, status: statusNames[code] ?? 'UNKNOWN', ...(details && { details }) } };
}

/** Google's front end answers an unknown address with a web page instead of JSON. */
export function pageNotFound(path: string): Refusal {
  const shown = path.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  const body = `<!DOCTYPE html>
<html lang=en><meta charset=utf-8><title>Error 404 (Not Found)!!1</title>
<p><b>404.</b> <ins>That’s an error.</ins>
<p>The requested URL <code>${shown}</code> was not found on this server. <ins>That’s all we know.</ins>
`;
  return { status: 404, headers: { 'Content-Type': 'text/html; charset=UTF-8' }, body };
}

/** A spent quota, in the form of the Gemini API: https://github.com/diegosouzapw/OmniRoute/issues/9504 */
function spent(period: string, retryDelay?: string): Refusal {
  const quotaId = `GenerateRequests${period}PerProjectPerModel`;
  const message = 'You exceeded your current quota, please check your plan and billing details.';
  return vertexError(429, message, [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId, quotaValue: '20' }] },
    ...(retryDelay ? [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }] : []),
  ]);
}

/** Vertex AI's errors. */
export const vertexErrors: ErrorBodies = {
  wrong: (place, expected) => vertexError(400, `${snakeCase(bracketed(place))}: expected ${expected}`),
  contentType: (received) =>
    vertexError(400, `Invalid content type: ${received}. Send the request as application/json.`),
  json: () => vertexError(400, 'Invalid JSON payload received. Unexpected token.'),
  model(_model, path) {
    const resource = path.replace(/^\/v1(beta1)?\//, '').replace(/:\w+$/, '');
    return vertexError(404, `Publisher Model \`${resource}\` was not found.`);
  },
  // Google's text (https://github.com/rpurinton/gemini-php/issues/2); its status is 403.
  denied(model) {
    const resource = `//aiplatform.googleapis.com/publishers/google/models/${model}`;
    const why = `Permission 'aiplatform.endpoints.predict' denied on resource '${resource}'`;
    return vertexError(401, `${why} (or it may not exist).`);
  },
  status: (status) => vertexError(status, 'The simulator failed as asked.'),
  tooLong: (tokens, maxTokens) =>
    vertexError(
      400,
      `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${maxTokens}).`,
    ),
  notReady: () => vertexError(503, 'The model is overloaded. Please try again later.'),
  // The name of a quota says nothing beside a wait: https://github.com/google-gemini/gemini-cli/pull/18073
  quotas: [spent('PerDay'), spent('PerDay', '36s'), spent('PerMinute', '21s')],
  hint: (name) =>
    vertexError(
      400,
      `${name === 'reasoningEffort' ? 'Thinking level' : snakeCase(name)} is not supported for this model.`,
    ),
  signature: () => vertexError(400, 'Corrupted thought signature.'),
};
