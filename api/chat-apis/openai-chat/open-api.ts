import generated from '../../generated/openapi.json' with { type: 'json' };
import type { Answer, Operation, Schema } from '../../openapi/docs.js';
import { commonAnswers } from '../../openapi/openapi.js';

/** JSON of the schema with this name. */
export const jsonOf = (schema: string): Record<string, { schema: unknown }> => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` } },
});

/** A text field. */
export const textOf = (description: string): Schema => ({ type: 'string', description });

/** An object with all of these fields, and maybe with others. */
export const objectOf = (
  description: string,
  { properties, ...own }: Schema & Required<Pick<Schema, 'properties'>>,
): Schema => ({
  ...own,
  description,
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: true,
});

type Headers = NonNullable<Answer['headers']>;

const text = { schema: { type: 'string' } };
const chatHeaders: Headers = {
  'Preference-Applied': text,
  'X-Ignored-Fields': text,
  'Idempotency-Replayed': text,
  'Content-Location': text,
  'X-LLM-Attempts': text,
};
/** Refused before anything of the chat is known. */
const refusedEarly: ReadonlySet<string> = new Set(['401', '403', '405', '415']);

/** The errors of an operation: those that all have, and its own by status. `isChat` if it takes a conversation. */
export function errorAnswers(
  own: Readonly<Record<string, string>>,
  { isChat = false }: { isChat?: boolean } = {},
): Record<string, Answer> {
  const common = Object.entries(commonAnswers({ hasBody: isChat })).map(([status, [description]]) => [
    status,
    description,
  ]);
  const descriptions: Record<string, string> = { ...Object.fromEntries(common), ...own };
  return Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => {
      const isLimited = status === '429' || status >= '500';
      const headers: Headers = {
        'x-should-retry': {
          description: '`true` or `false`: whether the clients of OpenAI try again by themselves.',
          ...text,
        },
        ...(isChat && !refusedEarly.has(status) && chatHeaders),
        ...(isLimited && {
          'Retry-After': text,
          'retry-after-ms': { description: 'As `Retry-After`, in milliseconds.', ...text },
        }),
        ...(['401', '403'].includes(status) && { 'WWW-Authenticate': text }),
        ...(status === '405' && { Allow: text }),
      };
      return [status, { description, headers, content: jsonOf('OpenAiError') }];
    }),
  );
}

/** Only the text of a chat is written differently here. */
const chatAnswers = generated.paths['/chat'].post.responses;

const header = (name: string, description: string, schema: Schema = { type: 'string' }) => ({
  description,
  in: 'header',
  name,
  required: false,
  schema,
});

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
    ...errorAnswers(
      {
        400: 'Bad request, or one that the provider refused',
        404: 'No such model or provider',
        422: 'The key was used with another request',
        429: 'Over a limit, of this server or of the provider',
        502: 'The provider failed, or refused our credentials',
        503: 'Overloaded, or the provider or the queue is unavailable',
        504: 'Not in time',
      },
      { isChat: true },
    ),
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
