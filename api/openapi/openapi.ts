import { z } from 'zod';
import type { Config } from '../../shared/config/config.js';
import { release } from '../../shared/runtime/program.js';
import type { ChatApi } from '../chat-apis/chat-api.js';
import generated from '../generated/openapi.json' with { type: 'json' };
import type { Document, Info, Operation, Schema } from './docs.js';
import { exampleOf } from './openapi-examples.js';
import { documentPathOf, groupOf, groupsOf, inOrder } from './openapi-order.js';

/** The parts of the configuration that the document shows. */
export type DocumentFacts = Pick<
  Config,
  'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT' | 'BLOG_BASE_URL' | 'BLOG_READS'
>;

/** Checks requests: bodies by the name of their schema, query parameters by their own names. */
interface RequestSchemas {
  readonly bodies: Readonly<Record<string, z.ZodObject>>;
  readonly queries: readonly z.ZodObject[];
}

/** Headers that no answer lacks which has them; the generator marks every header so. */
const alwaysSent = new Set([
  'X-Request-Id',
  'Location',
  'ETag',
  'Last-Modified',
  'Cache-Control',
  'Vary',
  'Set-Cookie',
  'WWW-Authenticate',
  'Allow',
  'x-should-retry',
]);

/**
 * The generated document, with what the generator cannot express: addresses, limits, headers, public reads; and with
 * the APIs of others.
 */
export function createDocument(
  facts: DocumentFacts,
  { bodies, queries }: RequestSchemas,
  apis: readonly ChatApi[],
): object {
  const document = structuredClone(generated) as unknown as Document;
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    addCommonAnswers(operation);
    markProblems(operation);
  }
  for (const api of apis) addApi(document, api);
  const groups = groupsOf(apis);
  for (const [path, operations] of Object.entries(document.paths))
    for (const operation of Object.values(operations)) {
      const { name = '' } = groupOf(path, groups) ?? {};
      Object.assign(operation, { tags: [name] });
      describeHeaders(operation, { isPublic: publicGroups.has(name) });
      describeSecurity(operation, facts);
      describeParameters(operation, queries);
      describeTexts(operation);
    }
  const schemas = Object.fromEntries(
    Object.entries(document.components.schemas).filter(([name]) => !name.endsWith('Query')),
  );
  for (const [name, checked] of Object.entries(bodies)) addLimits(schemas[name], checked);
  offerMergePatch(document.paths['/blogs/{id}']?.patch);
  for (const [name, schema] of Object.entries(schemas)) {
    wrapReferences(schema, schemas);
    if (schema.properties) schema.example ??= exampleOf(name, schemas);
  }
  const paths = inOrder(document.paths, groups).map(([path, operations]) => [
    path,
    path.startsWith('/chat') ? operations : { servers: [{ url: serverOf(path, facts) }], ...operations },
  ]);
  return {
    ...document,
    info: describeInfo(document.info),
    tags: groups.map(({ name, description }) => ({ name, description })),
    servers: [{ url: facts.CHAT_BASE_URL }, { url: facts.CHAT_BASE_URL_ALT }],
    paths: Object.fromEntries(paths),
    components: { ...document.components, schemas },
  };
}

function addApi({ paths, components }: Document, { operations, schemas }: ChatApi): void {
  for (const { method, path, openApi } of operations)
    paths[documentPathOf(path)] = {
      ...paths[documentPathOf(path)],
      [method]: structuredClone(openApi),
    };
  for (const [name, schema] of Object.entries(schemas))
    components.schemas[name] = {
      ...components.schemas[name],
      ...(schema instanceof z.ZodObject ? toOpenApi(schema) : structuredClone(schema)),
    };
}

/** The groups whose answers have no prompts in them. */
const publicGroups: ReadonlySet<string> = new Set(['blogs', 'feeds']);

/** The blog has a base of its own; the operators' addresses and the APIs of others are always at the root. */
const serverOf = (path: string, { CHAT_BASE_URL, BLOG_BASE_URL }: DocumentFacts): string =>
  /^\/(blogs|feed)/.test(path) ? BLOG_BASE_URL : new URL(CHAT_BASE_URL).origin;

/** Explains the two versions: every upgrade changes the release; the API's version changes only when clients must. */
const describeInfo = (info: Info): object => ({
  ...info,
  description: `${info.description}. Version ${info.version} is the version of the API itself; this server runs release ${release} of Quillgate.`,
  contact: { name: 'The operators of this installation' },
  license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
});

/** Wraps described references in `allOf`: OpenAPI 3.0 ignores a text beside `$ref`. Null needs a type beside it. */
function wrapReferences(schema: Schema, schemas: Readonly<Record<string, Schema>>): void {
  const { properties = {} } = schema;
  for (const [field, { allOf, $ref = allOf?.[0]?.$ref, ...beside }] of Object.entries(properties)) {
    if ($ref === undefined || Object.keys(beside).length === 0) continue;
    const { type } = schemas[$ref.split('/').at(-1) ?? ''] ?? {};
    properties[field] = { ...beside, ...(beside.nullable && { type }), allOf: [{ $ref }] };
  }
}

/** The generator takes every body for plain JSON. */
function markProblems({ responses }: Operation): void {
  for (const answer of Object.values(responses)) {
    const body = answer.content?.['application/json'];
    if ((body?.schema as Schema | undefined)?.$ref?.endsWith('/Problem'))
      answer.content = { 'application/problem+json': { schema: body?.schema } };
  }
}

/** Adds the headers that controllers do not repeat, since every answer has them. */
function describeHeaders({ responses }: Operation, { isPublic }: { isPublic: boolean }): void {
  for (const answer of Object.values(responses)) {
    const common = { 'X-Request-Id': { schema: { type: 'string' } }, ...answer.headers };
    answer.headers = isPublic ? common : { ...common, 'Cache-Control': noStore };
    for (const [name, header] of Object.entries(answer.headers))
      answer.headers[name] = { ...header, required: alwaysSent.has(name) };
  }
}

/** No cache may store prompts and answers, nor the problems sent instead of them. */
const noStore = { description: '`no-store`', schema: { type: 'string' } };

/** OpenAPI 3.0 allows scopes for OAuth only; reads require a token only when they are not public. */
function describeSecurity(operation: Operation, { BLOG_READS }: DocumentFacts): void {
  const isRead = operation.security?.some(({ bearer }) => bearer?.includes('blogs:read'));
  const asked = (operation.security ?? []).flatMap((schemes) => {
    // At the APIs of others: an access token, or the name and the secret of a chat user.
    if ('chat' in schemes) return [{ bearer: [] }, { basic: [] }];
    if ('admin' in schemes) return [{ bearer: [] }, { session: [] }];
    return [Object.fromEntries(Object.keys(schemes).map((scheme) => [scheme, []]))];
  });
  operation.security = isRead && BLOG_READS === 'public' ? [...asked, {}] : asked;
}

/** Operations whose `id` in the path is no UUID, or need not be one. */
const namedOtherwise: ReadonlySet<string> = new Set(['getModel', 'getPost', 'getRequest']);

/** Adds limits in characters from the schemas that check them: the generated check would count UTF-16 units. */
function describeParameters(
  { parameters = [], operationId }: Operation,
  queries: readonly z.ZodObject[],
): void {
  const names = parameters.flatMap(({ name, in: place }) => (place === 'query' ? [name] : [])).sort();
  const checked = queries.find(({ shape }) => Object.keys(shape).sort().join() === names.join());
  const limits = checked ? limitsOf(checked) : {};
  for (const parameter of parameters) {
    const { name, in: place, schema } = parameter;
    // Instead of a reference, beside which nothing may stand.
    if (place === 'query' && !('default' in schema)) {
      const { $ref: _, ...own } = schema;
      parameter.schema = { ...own, ...limits[name] };
    }
    if (name === 'id' && !namedOtherwise.has(operationId)) Object.assign(schema, { format: 'uuid' });
  }
}

function addLimits(schema: Schema | undefined, checked: z.ZodObject): void {
  // Unknown fields are ignored elsewhere.
  if (schema && checked._zod.def.catchall?._zod.def.type === 'never') schema.additionalProperties = false;
  for (const [name, limits] of Object.entries(limitsOf(checked))) {
    const description = schema?.properties?.[name]?.description;
    if (schema?.properties) schema.properties[name] = { ...(description && { description }), ...limits };
  }
}

const limitsOf = (checked: z.ZodObject): Record<string, Schema> => toOpenApi(checked).properties ?? {};

/** The schema of what may be sent. */
const toOpenApi = (checked: z.ZodObject): Schema =>
  z.toJSONSchema(checked, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ jsonSchema }) => spellNull(jsonSchema as Schema),
  }) as Schema;

/** Writes null for OpenAPI 3.0.3 (clarification of 2019-10): an enum lists it, and only typed schemas are nullable. */
function spellNull(schema: Schema): void {
  if (!schema.nullable) return;
  if (schema.enum) schema.enum = [...new Set([...schema.enum, null])];
  const options = schema.anyOf ?? schema.oneOf;
  if (!options || schema.type) return;
  // Null fits each of them, and so not one alone.
  schema.anyOf = options.map((each) => ({ ...each, nullable: true }));
  for (const option of schema.anyOf) spellNull(option);
  delete schema.oneOf;
  delete schema.nullable;
}

/** The generator gives every media type of an answer the same schema. */
function describeTexts({ responses }: Operation): void {
  for (const { content = {} } of Object.values(responses)) {
    for (const [type, media] of Object.entries(content)) {
      if (type.startsWith('text/')) media.schema = { type: 'string' };
    }
  }
}

/** The generator supports only one media type per body. */
function offerMergePatch(operation: Operation | undefined): void {
  const content = operation?.requestBody?.content;
  if (content) content['application/merge-patch+json'] = content['application/json'];
}

/** The description of an answer, and its own header if it has one. */
type Described = readonly [description: string, header?: string];

const ofAll: Record<string, Described> = {
  400: ['Bad request'],
  401: ['No or wrong credentials', 'WWW-Authenticate'],
  403: ['The user is suspended, or the token lacks the scope', 'WWW-Authenticate'],
  405: ['Another method', 'Allow'],
  429: ['Too many failed logins', 'Retry-After'],
  500: ['Server error', 'Retry-After'],
};
const ofBodies: Record<string, Described> = {
  413: ['Body too large'],
  415: ['Not JSON'],
};

/** The errors that any operation may answer with, by status. */
export const commonAnswers = ({ hasBody }: { hasBody: boolean }): Readonly<Record<string, Described>> => ({
  ...ofAll,
  ...(hasBody && ofBodies),
});

/** Adds the errors that any operation may answer with, but for those that its controller describes. */
function addCommonAnswers({ requestBody, responses }: Operation): void {
  for (const [status, answer] of Object.entries(commonAnswers({ hasBody: requestBody !== undefined })))
    responses[status] ??= toProblem(answer);
}

const toProblem = ([description, header]: Described): Operation['responses'][string] => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } },
  ...(header !== undefined && { headers: { [header]: { schema: { type: 'string' } } } }),
});
