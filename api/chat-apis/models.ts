import type { ListedModel } from '../../shared/fleet/fleet.js';
import type { Schema } from '../openapi/docs.js';
import type { ChatApiDeps, Operation } from './chat-api.js';
import { errorAnswersOf, jsonOf, objectOf, textOf } from './open-api-parts.js';
import { modelNotFound } from './request-options.js';

/** A model that may be named at an API of others; its schema says what the fields mean. */
const toModel = ({ provider, model, since }: ListedModel, id = `${provider}/${model}`) => ({
  id,
  object: 'model',
  created: Math.floor(since / 1000),
  owned_by: provider,
});

function modelsOf({ models, config }: ChatApiDeps) {
  const aliases = (config.MODEL_ALIASES ?? []).filter(({ name }) => !name.endsWith('*'));
  const named = aliases.map((alias) => toModel({ ...alias, since: performance.timeOrigin }, alias.name));
  return [...models().map((listed) => toModel(listed)), ...named];
}

const security = [{ chat: [] }];

/** The models that clients of these APIs may name. */
export const modelOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/v1/models',
    openApi: {
      operationId: 'listModels',
      summary: 'List models',
      description:
        'The models that may be named here, and their other names, but for those that only a pattern allows.',
      security,
      parameters: [],
      responses: {
        200: { description: 'The models', content: jsonOf('ModelPage') },
        ...errorAnswersOf('OpenAiError', {}, { isChat: false }),
      },
    },
    handle: (_request, response, deps) => void response.json({ object: 'list', data: modelsOf(deps) }),
  },
  {
    method: 'get',
    // The id of a model has slashes, which not every client escapes.
    path: '/v1/models/*id',
    openApi: {
      operationId: 'getModel',
      summary: 'Get a model',
      description: 'One of those that the list has.',
      security,
      parameters: [
        {
          description: '`provider/model`, with or without its slashes escaped.',
          in: 'path',
          name: 'id',
          required: true,
          schema: { type: 'string' },
        },
      ],
      responses: {
        200: { description: 'The model', content: jsonOf('Model') },
        ...errorAnswersOf('OpenAiError', { 404: 'No such model' }, { isChat: false }),
      },
    },
    handle: ({ params: { id } }, response, deps) => {
      const name = [id].flat().join('/');
      const model = modelsOf(deps).find((each) => each.id === name);
      if (model === undefined) throw modelNotFound();
      response.json(model);
    },
  },
];

const example = {
  id: 'openai/gpt-6-luna',
  object: 'model',
  created: 1_795_253_400,
  owned_by: 'openai',
};
const only = (value: string): Schema => ({ type: 'string', enum: [value], nullable: false });

export const modelSchemas: Readonly<Record<string, Schema>> = {
  Model: objectOf('A model that may be named here.', {
    properties: {
      id: textOf('`provider/model`, or another name for one.'),
      object: only('model'),
      created: {
        type: 'number',
        format: 'double',
        description:
          'The time at which this process first saw the model, not its release date; in seconds since the epoch.',
      },
      owned_by: textOf('Its provider.'),
    },
    example,
  }),
  ModelPage: objectOf('Body of `GET /v1/models`.', {
    properties: {
      object: only('list'),
      data: { type: 'array', items: { $ref: '#/components/schemas/Model' } },
    },
    example: { object: 'list', data: [example] },
  }),
};
