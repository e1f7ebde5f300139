import { randomUUID } from 'node:crypto';
import { claudeErrors } from '../claude.js';
import { dotted, jsonRefusal, type Refusal } from '../refusal.js';
import type { ErrorBodies } from '../wire-format.js';

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
const modelError = (message: string): Refusal =>
  validationException(`The model returned the following errors: ${message}`);

const exceptions: Record<number, [exception: string, message: string]> = {
  400: ['ValidationException', 'The request was rejected by the simulator as asked.'],
  401: ['UnrecognizedClientException', 'The security token included in the request is invalid.'],
  403: ['AccessDeniedException', "You don't have access to the model with the specified model ID."],
  404: [
    'ResourceNotFoundException',
    'Could not resolve the foundation model from the provided model identifier.',
  ],
  408: [
    'ModelTimeoutException',
    'The request took too long to process. Processing time exceeded the model timeout.',
  ],
  413: ['RequestEntityTooLargeException', 'The request body is too large.'],
  424: ['ModelErrorException', 'The request failed due to an error while processing the model.'],
  429: ['ThrottlingException', 'Too many requests, please wait before trying again.'],
  500: [
    'InternalServerException',
    'The system encountered an unexpected error during processing. Try your request again.',
  ],
  503: ['ServiceUnavailableException', 'Bedrock is unable to process your request.'],
};

const otherClientError: [string, string] = ['ValidationException', 'The request could not be processed.'];
const otherServerError: [string, string] = [
  'InternalServerException',
  'The server failed to process the request.',
];

/** Bedrock's errors (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). */
export const bedrockErrors: ErrorBodies = {
  wrong: (place, expected) => validationException(`${dotted(place)}: expected ${expected}`),
  contentType: (received) =>
    bedrockError(415, 'UnsupportedMediaTypeException', `Unsupported content type: ${received}`),
  json: () => bedrockError(400, 'SerializationException', 'The request body is not a JSON object.'),
  model: () => validationException('The provided model identifier is invalid.'),
  // IAM's text (https://github.com/aws-samples/semantic-search-with-amazon-opensearch/issues/43); its status is 403.
  denied: (model) =>
    bedrockError(
      401,
      'AccessDeniedException',
      `User: arn:aws:sts::000000000000:assumed-role/simulated is not authorized to perform: bedrock:InvokeModel on resource: arn:aws:bedrock:us-east-1::foundation-model/${model} because no identity-based policy allows the bedrock:InvokeModel action`,
    ),
  status(status) {
    const [exception, message] = exceptions[status] ?? (status < 500 ? otherClientError : otherServerError);
    return bedrockError(status, exception, message);
  },
  tooLong: () => validationException('Input is too long for requested model.'),
  notReady: () =>
    bedrockError(
      429,
      'ModelNotReadyException',
      'The model is not ready for inference. Wait and try your request again.',
    ),
  quotas: [bedrockError(400, 'ServiceQuotaExceededException', 'Your request exceeds the service quota.')],
  ...claudeErrors(modelError),
  // Other models refuse signed thinking: https://github.com/NousResearch/hermes-agent/pull/105119
  reasoning: () =>
    validationException("This model doesn't support the reasoningContent field. Remove it and try again."),
  // https://github.com/strands-agents/harness-sdk/pull/1807
  cache: () => bedrockError(403, 'AccessDeniedException', 'Your request did not allow prompt caching.'),
};
