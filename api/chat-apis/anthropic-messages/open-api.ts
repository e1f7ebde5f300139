import type { Operation, Schema } from '../../openapi/docs.js';
import { errorAnswersOf, header, jsonOf, objectOf, textOf } from '../open-api-parts.js';
import { messageBody } from './message-body.js';

export const createMessageApi: Operation = {
  operationId: 'createMessage',
  summary: 'Create a message',
  description: [
    "Anthropic's Messages API. The body goes to the model as it came: cache marks, thinking, beta features and fields",
    'that this server does not know too. `model` is `anthropic/…`, a name of Claude, a model of the provider that',
    '`X-LLM` names, or a name that the operators have given one.',
  ].join('\n'),
  security: [{ chat: [] }],
  parameters: [
    header('anthropic-version', 'A day; absent means `2023-06-01`.'),
    header('anthropic-beta', 'A comma list of beta features, which goes on as it came.'),
    header('X-LLM', 'Which provider has the model; for models without `provider/`.', {
      $ref: '#/components/schemas/ProviderId',
    }),
    header('Prefer', 'As for `POST /chat`.'),
    header('Idempotency-Key', 'As for `POST /chat`.'),
    header('X-LLM-Fallback', 'As for `POST /chat`.'),
    header('X-Stainless-Timeout', 'How long the client waits for a whole message, in seconds.'),
  ],
  requestBody: { required: true, content: jsonOf('MessageRequest') },
  responses: {
    200: {
      description: 'The message',
      content: { ...jsonOf('Message'), 'text/event-stream': { schema: {} } },
    },
    202: {
      description: 'Accepted, with Prefer: respond-async; the reply will be at Location',
      content: jsonOf('AcceptedChat'),
    },
    ...errorAnswersOf('AnthropicError', {
      400: 'Bad request, or one that the provider refused',
      404: 'No such model or provider',
      422: 'The key was used with another request',
      429: 'Over a limit, of this server or of the provider',
      502: 'The provider failed, or refused our credentials',
      503: 'Overloaded, or the provider or the queue is unavailable',
      504: 'Not in time',
    }),
  },
};

const requestExample = {
  model: 'claude-sonnet-5',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Why is the sky blue?' }],
};

export const schemas: Readonly<Record<string, Schema | typeof messageBody>> = {
  MessageRequest: messageBody.meta({ example: requestExample }),
  Message: objectOf('A message of the model.', {
    properties: {
      id: textOf('`msg_` and the id of the chat.'),
      type: textOf('`message`.'),
      role: textOf('`assistant`.'),
      model: textOf('The model as the request named it.'),
      content: { type: 'array', items: { type: 'object', additionalProperties: true } },
      stop_reason: textOf('Why it ended.'),
    },
    example: {
      id: 'msg_6f9d0c1e-4b7a-4f3e-9a51-2c8d7e6b5a40',
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-5',
      content: [{ type: 'text', text: 'Air scatters blue light more than red.', citations: null }],
      stop_reason: 'end_turn',
    },
  }),
  AnthropicError: objectOf('Body of every error below `/v1/messages`.', {
    properties: {
      type: textOf('`error`.'),
      error: objectOf('Why a request failed.', {
        properties: { type: textOf('Such as `invalid_request_error`.'), message: textOf('For people.') },
      }),
      request_id: textOf('Id of the request.'),
    },
    example: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'max_tokens: is required' },
      request_id: '6f9d0c1e-4b7a-4f3e-9a51-2c8d7e6b5a40',
    },
  }),
};
