import { randomUUID } from 'node:crypto';
import { claudeErrors } from '../claude.js';
import { dotted, type ErrorBodies, jsonRefusal, type Refusal } from '../wire-format.js';

/** An error in AWS's REST-JSON format: the exception's name in a header, the message in the body. */
export function bedrockError(status: number, exception: string, message: string): Refusal {
  return jsonRefusal(
    status,
    { message },
    { 'x-amzn-errortype': exception, 'x-amzn-requestid': randomUUID() },
  );
}

/** The exception for a violated rule. */
function validationException(message: string): Refusal {
  return bedrockError(400, 'ValidationException', message);
}

/** The error of the model itself, as Bedrock passes it on. */
export const modelError = (message: string): Refusal =>
  validationException(`The model returned the following errors: ${message}`);

const exceptions: Record<number, string> = {
  400: 'ValidationException',
  401: 'UnrecognizedClientException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  413: 'RequestEntityTooLargeException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
};

/** Bedrock's errors (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). */
export const bedrockErrors: ErrorBodies = {
  wrong: (place, expected) => validationException(`${dotted(place)}: expected ${expected}`),
  contentType: (received) =>
    bedrockError(415, 'UnsupportedMediaTypeException', `Unsupported content type: ${received}`),
  json: () => bedrockError(400, 'SerializationException', 'The request body is not a JSON object.'),
  model: () => validationException('The provided model identifier is invalid.'),
  // IAM's text (https://github.com/aws-samples/semantic-search-with-amazon-opensearch/issues/43); its status is 403.
  denied(model) {
    const why = `is not authorized to perform: bedrock:InvokeModel on resource: foundation-model/${model}`;
    return bedrockError(401, 'AccessDeniedException', `User: arn:aws:sts::000000000000:simulated ${why}`);
  },
  status(status) {
    const exception = exceptions[status] ?? exceptions[status < 500 ? 400 : 500] ?? '';
    return bedrockError(status, exception, 'The simulator failed as asked.');
  },
  tooLong: () => validationException('Input is too long for requested model.'),
  notReady: () => bedrockError(429, 'ModelNotReadyException', 'The model is not ready for inference.'),
  quotas: [bedrockError(400, 'ServiceQuotaExceededException', 'Your request exceeds the service quota.')],
  ...claudeErrors(modelError),
  // Other models refuse signed thinking: https://github.com/NousResearch/hermes-agent/pull/105119
  reasoning: () =>
    validationException("This model doesn't support the reasoningContent field. Remove it and try again."),
  // https://github.com/strands-agents/harness-sdk/pull/1807
  cache: () => bedrockError(403, 'AccessDeniedException', 'Your request did not allow prompt caching.'),
};
