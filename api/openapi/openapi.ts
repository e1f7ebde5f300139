import { z } from 'zod';
import type { Config } from '../../shared/config/config.js';
import { release } from '../../shared/runtime/release.js';
import { postInput, postPatch } from '../blog/post-body.js';
import { postQuery } from '../blog/post-query.js';
import generated from '../generated/openapi.json' with { type: 'json' };
import { schemaExamples } from './openapi-examples.js';

type Facts = Pick<Config, 'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT' | 'BLOG_BASE_URL' | 'BLOG_READS'>;

/** The parts of an OpenAPI 3.0 document that are looked at here. */
interface Schema {
  description?: string;
  nullable?: boolean;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  $ref?: string;
  allOf?: { $ref: string }[];
  example?: unknown;
}
interface Answer {
  headers?: Record<string, { required?: boolean; description?: string; schema?: unknown }>;
  content?: Record<string, { schema: unknown }>;
}
interface Operation {
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, unknown> };
  responses: Record<string, Answer>;
}
interface Info {
  version: string;
  description: string;
}
interface Document {
  info: Info;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** Headers that an answer may lack; the generator takes every header for one that is always sent. */
const notAlwaysSent = new Set([
  'X-LLM-Input-Tokens',
  'X-LLM-Output-Tokens',
  'Retry-After',
  'Accept-Patch',
  'Link',
  'X-Ignored-Fields',
  'Preference-Applied',
  'Idempotency-Replayed',
  'Content-Location',
]);

/**
 * The OpenAPI 3.0 document: what is generated from the controllers, with what the generator cannot say: addresses,
 * limits of the bodies, which headers are always sent, and who may read.
 */
export function describeApi(facts: Facts): object {
  const document = structuredClone(generated) as unknown as Document;
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  for (const operation of operations) {
    markHeaders(operation);
    describeSecurity(operation, facts);
    describeParameters(operation);
    describeTexts(operation);
  }
  for (const [path, operations] of Object.entries(document.paths))
    if (path.startsWith('/chat')) Object.values(operations).forEach(describeNoStore);
  const { PostQuery: _, ...schemas } = document.components.schemas;
  addLimits(schemas.PostInput, postInput);
  addLimits(schemas.PostPatch, postPatch);
  offerMergePatch(document.paths['/blogs/{id}']?.patch);
  for (const [name, schema] of Object.entries(schemas)) completeSchema(name, schema);
  const paths = inOrder(document.paths).map(([path, operations]) => [
    path,
    path.startsWith('/chat') ? operations : { servers: [{ url: facts.BLOG_BASE_URL }], ...operations },
  ]);
  return {
    ...document,
    info: describeInfo(document.info),
    tags,
    servers: [{ url: facts.CHAT_BASE_URL }, { url: facts.CHAT_BASE_URL_ALT }],
    paths: Object.fromEntries(paths),
    components: { ...document.components, schemas },
  };
}

/** As people come to use them; the generator goes by the names of files. */
const inOrder = (paths: Document['paths']) =>
  Object.entries(paths).sort(([a], [b]) => firstPaths.indexOf(a) - firstPaths.indexOf(b));

const firstPaths = ['/chat', '/chat/{id}', '/blogs', '/blogs/{id}', '/feed.json', '/feed.xml'];

const tags = [
  {
    name: 'chat',
    description: 'Conversations with the providers of language models. Basic: name and secret.',
  },
  { name: 'blogs', description: 'Posts in Markdown. Bearer: an access token.' },
  { name: 'feeds', description: 'The published posts, for feed readers.' },
];

/** Which version is which: an upgrade changes the release, and the API's version only when clients have to. */
const describeInfo = (info: Info): object => ({
  ...info,
  description: `${info.description}. Version ${info.version} is that of this API, whatever serves it; here it is served by release ${release} of Quillgate.`,
  contact: { name: 'The operators of this installation' },
  license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
});

/** Adds the example, and puts references that have a description where OpenAPI 3.0 lets them have one. */
function completeSchema(name: string, schema: Schema): void {
  const example = schemaExamples[name];
  if (example !== undefined) schema.example = example;
  for (const [field, { $ref, ...beside }] of Object.entries(schema.properties ?? {})) {
    if ($ref !== undefined && schema.properties && Object.keys(beside).length > 0)
      schema.properties[field] = { ...beside, allOf: [{ $ref }] };
  }
}

function markHeaders({ responses }: Operation): void {
  for (const { headers = {} } of Object.values(responses)) {
    for (const [name, header] of Object.entries(headers)) header.required = !notAlwaysSent.has(name);
  }
}

/** Prompts and answers are for nobody's cache, nor are the problems in their place. */
function describeNoStore({ responses }: Operation): void {
  for (const answer of Object.values(responses))
    answer.headers = { ...answer.headers, 'Cache-Control': noStore };
}

const noStore = { required: true, description: '`no-store`', schema: { type: 'string' } };

/** OpenAPI 3.0 knows scopes for OAuth alone; reads ask for a token only when they are closed. */
function describeSecurity(operation: Operation, { BLOG_READS }: Facts): void {
  const isRead = operation.security?.some(({ bearer }) => bearer?.includes('blogs:read'));
  const asked = (operation.security ?? []).map((schemes) =>
    Object.fromEntries(Object.keys(schemes).map((scheme) => [scheme, []])),
  );
  operation.security = isRead && BLOG_READS === 'public' ? [...asked, {}] : asked;
}

/** Limits in characters, which the generator would check as UTF-16 units, come from what really checks them. */
function describeParameters({ parameters = [] }: Operation): void {
  const limits = limitsOf(postQuery);
  for (const { name, in: place, schema } of parameters) {
    if (place === 'query' && !('default' in schema)) Object.assign(schema, limits[name]);
    if (place === 'path') Object.assign(schema, { format: 'uuid' });
  }
}

function addLimits(schema: Schema | undefined, checked: z.ZodObject): void {
  for (const [name, limits] of Object.entries(limitsOf(checked))) {
    const description = schema?.properties?.[name]?.description;
    // A value that is not listed is refused, also where it is nullable (OpenAPI 3.0.3, clarification of 2019-10).
    const listed = limits.nullable && limits.enum ? { enum: [...limits.enum, null] } : {};
    if (schema?.properties)
      schema.properties[name] = { ...(description && { description }), ...limits, ...listed };
  }
}

const limitsOf = (checked: z.ZodObject): Record<string, Schema> =>
  (z.toJSONSchema(checked, { target: 'openapi-3.0', io: 'input' }) as Schema).properties ?? {};

/** The generator describes every media type of an answer alike. */
function describeTexts({ responses }: Operation): void {
  for (const { content = {} } of Object.values(responses)) {
    for (const [type, media] of Object.entries(content)) {
      if (type.startsWith('text/')) media.schema = { type: 'string' };
    }
  }
}

/** The generator takes one media type for a body. */
function offerMergePatch(operation: Operation | undefined): void {
  const content = operation?.requestBody?.content;
  if (content) content['application/merge-patch+json'] = content['application/json'];
}
