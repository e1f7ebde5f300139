import { describe, expect, it } from 'vitest';
import { describeApi } from '../../../api/app.js';
import { parseConfig } from '../../../shared/config/config.js';
import { type OpenApiDocument, operationsOf, readDocument } from '../../support/openapi-document.js';

/** The example of each schema of JSON that is referred to. */
const examplesIn = (content: Record<string, unknown> = {}) =>
  Object.entries(content).flatMap(([type, media]) => {
    const { $ref } = (media as { schema: { $ref?: string } }).schema;
    if ($ref === undefined || !type.includes('json')) return [];
    const schema = document.components.schemas[$ref.split('/').at(-1) ?? ''] as { example?: unknown };
    return [{ type, example: schema.example }];
  });

const describeFor = (environment: Record<string, string>) =>
  describeApi(parseConfig(environment, 'config')) as OpenApiDocument;

const document = describeFor({});
const operations = operationsOf(document).map(({ operation }) => operation);
/** Read once: each schema that is used has to be compiled. */
const described = readDocument(document);

describe('the OpenAPI document of the API', () => {
  it.each(operationsOf(document))(
    '$operation.operationId -> every answer has an id, and every error is a problem, or one of OpenAI’s',
    ({ path, operation }) => {
      const isOpenAi = path.startsWith('/v1/');
      const type = isOpenAi ? 'application/json' : 'application/problem+json';
      const schema = { $ref: `#/components/schemas/${isOpenAi ? 'OpenAiError' : 'Problem'}` };
      for (const [status, { headers = {}, content }] of Object.entries(operation.responses)) {
        expect(headers['X-Request-Id'], status).toMatchObject({ required: true });
        if (status < '400') continue;
        expect(content).toEqual({ [type]: { schema } });
        if (isOpenAi) expect(headers['x-should-retry'], status).toMatchObject({ required: true });
      }
    },
  );

  it('any schema in it -> can be used, and refuses a number where an object belongs', () => {
    for (const { operationId, requestBody, responses } of operations) {
      const { acceptsBody, faultOf } = described.get(operationId) ?? {};
      for (const type of Object.keys(requestBody?.content ?? {})) expect(acceptsBody?.(type, 1)).toBe(false);
      for (const [status, { content = {} }] of Object.entries(responses)) {
        for (const type of Object.keys(content)) expect(faultOf?.(Number(status), type, 1)).toBeDefined();
      }
    }
  });

  it.each(operations)('$operationId -> its examples are real, and the schemas allow them', (operation) => {
    const { acceptsBody, faultOf } = described.get(operation.operationId) ?? {};
    for (const { type, example } of examplesIn(operation.requestBody?.content))
      expect(acceptsBody?.(type, example), type).toBe(true);
    for (const [status, { content }] of Object.entries(operation.responses))
      for (const { type, example } of examplesIn(content))
        expect(faultOf?.(Number(status), type, example), status).toBeUndefined();
  });

  it.each([
    ['public', [{ bearer: [] }, {}]],
    ['token', [{ bearer: [] }]],
  ])('with BLOG_READS=%s -> readers are asked for what it asks them for', (BLOG_READS, security) => {
    for (const { path, method, operation } of operationsOf(describeFor({ BLOG_READS }))) {
      const blog = method === 'get' ? security : [{ bearer: [] }];
      if (path.startsWith('/admin/')) continue;
      const openAi = /^\/(v1\/|usage)/.test(path) ? [{ bearer: [] }, { basic: [] }] : blog;
      const expected = path.startsWith('/chat') ? [{ basic: [] }] : openAi;
      expect(operation.security, operation.operationId).toEqual(expected);
    }
  });

  it('an address of operators -> asks for a token or a session, and signing in for nothing', () => {
    for (const { path, operation } of operationsOf(document)) {
      if (!path.startsWith('/admin/')) continue;
      const session = operation.operationId === 'signIn' ? [] : [{ session: [] }];
      const expected = path === '/admin/session' ? session : [{ bearer: [] }, { session: [] }];
      expect(operation.security, operation.operationId).toEqual(expected);
    }
  });
});
