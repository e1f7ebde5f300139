import generated from '../../generated/openapi.json' with { type: 'json' };
import type { Operation, Schema } from '../../openapi/docs.js';
import { errorAnswersOf, header, jsonOf, objectOf, textOf } from '../open-api-parts.js';

/** Only the text of a chat is written differently here. */
const chatAnswers = generated.paths['/chat'].post.responses;

export const createChatCompletionApi: Operation = {
  operationId: 'createChatCompletion',
  summary: 'Create a chat completion',
  description: [
    "OpenAI's chat completions, for every provider. `model` is `provider/model`, a model of the provider that `X-LLM`",
    'names, or a name that the operators have given one. Fields that this server does not know, and hints such as',
    '`temperature` that the provider does not take, are ignored and named in `X-Ignored-Fields`; other fields that it',
    'cannot do are refused, unless their value is the default. With `stream` the reply comes as chunks in server-sent',
    'events; a chat that fails after its first chunk ends with an `error` in place of `[DONE]`.',
  ].join('\n'),
  security: [{ chat: [] }],
  parameters: [
    header('X-LLM', 'Which provider has the model; for models without `provider/`.', {
      $ref: '#/components/schemas/ProviderId',
    }),
    header('Prefer', 'As for `POST /chat`.'),
    header('Idempotency-Key', 'As for `POST /chat`.'),
    header(
      'X-Stainless-Timeout',
      "In seconds: OpenAI's clients send how long they wait. That is the deadline, of a stream the one of\nits first chunk.",
    ),
    header('X-LLM-Fallback', 'As for `POST /chat`.'),
    header('X-Stainless-Read-Timeout', "The same as OpenAI's client for Python sends it."),
  ],
  requestBody: { required: true, content: jsonOf('ChatCompletionRequest') },
  responses: {
    200: {
      description: 'The reply',
      headers: chatAnswers['200'].headers,
      content: { ...jsonOf('ChatCompletion'), 'text/event-stream': { schema: {} } },
    },
    202: {
      description: 'Accepted, with Prefer: respond-async; the reply will be at Location',
      headers: chatAnswers['202'].headers,
      content: jsonOf('AcceptedChat'),
    },
    ...errorAnswersOf('OpenAiError', {
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

/** An example of `ChatCompletionRequest`, whose schema is the one that checks it. */
export const requestExample = {
  model: 'openai/gpt-6-luna',
  messages: [{ role: 'user', content: 'Why is the sky blue?' }],
};

const completionExample = {
  id: 'chatcmpl-6f9d0c1e-4b7a-4f3e-9a51-2c8d7e6b5a40',
  object: 'chat.completion',
  created: 1_795_253_400,
  model: 'openai/gpt-6-luna',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Air scatters blue light more than red.', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 },
};

/** The schemas that are written by hand, and the example of the reply's. */
export const schemas: Readonly<Record<string, Schema>> = {
  ChatCompletion: { example: completionExample },
  OpenAiError: objectOf('Body of every error below `/v1`.', {
    properties: { error: { $ref: '#/components/schemas/OpenAiErrorObject' } },
    example: {
      error: {
        message: 'messages[0].content must be a string or an array of parts.',
        type: 'invalid_request_error',
        param: 'messages[0].content',
        code: 'invalid_request',
      },
    },
  }),
  OpenAiErrorObject: objectOf('Why a request failed.', {
    properties: {
      message: textOf('For people.'),
      type: textOf('`invalid_request_error`, `rate_limit_error` or `server_error`.'),
      param: {
        ...textOf(
          "The field or header that is wrong, such as `messages[0].content`; of a place without one the provider's word.",
        ),
        nullable: true,
      },
      code: textOf(
        'Machine-readable reason: as that of a problem of `/chat`, but for `model_not_found` and `content_filter`.',
      ),
    },
  }),
};
