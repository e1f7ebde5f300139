import fc from 'fast-check';
import { type OpenApiDocument, type PlacedOperation } from '../../support/openapi-document.js';
import type { Header } from './client.js';
import { credentialsFor, headerValues, knownProperties, stepOf, strangeHeaders } from './known.js';
import type { Request, RequestBody } from './request.js';
import { type Schema, type SchemaValues, schemaValues } from './schemas.js';
import { canary, headerText } from './texts.js';

/** An operation, and what makes values of its schemas. */
export interface Target extends PlacedOperation {
  readonly schemas: SchemaValues;
  /** The schema of its body, if it has one. */
  readonly body: Schema | undefined;
}

export function targetOf(document: OpenApiDocument, placed: PlacedOperation): Target {
  const schemas = schemaValues(document.components.schemas, knownProperties);
  const [content] = Object.values(placed.operation.requestBody?.content ?? {});
  const body = content === undefined ? undefined : schemas.resolved((content as { schema: Schema }).schema);
  return { ...placed, method: placed.method.toUpperCase(), schemas, body };
}

/** Requests of which the document says that they are right. */
export function requestsFor(target: Target): fc.Arbitrary<Request> {
  const { method, path, operation } = target;
  const types = Object.keys(operation.requestBody?.content ?? {});
  return fc.record({
    method: methodsOf(target),
    path: stepOf(method, path).map((step) => path.replace(/\{\w+\}/, step)),
    query: fc.oneof({ weight: 1, arbitrary: strangeQuery }, { weight: 3, arbitrary: queriesOf(target) }),
    credentials: fc.constantFrom(...credentialsFor(method, path).right).map(authorization),
    contentType: types.length === 0 ? fc.constant(undefined) : contentTypes(types),
    own: headersOf(target),
    others: fc.oneof(fc.constant([]), fc.constantFrom(...strangeHeaders), markedHeaders),
    body: bodiesOf(target),
  });
}

export const authorization = (value: string): Header[] => (value === '' ? [] : [['Authorization', value]]);

/** The answer to a GET of events never ends. */
function methodsOf({ method, operation: { operationId } }: Target): fc.Arbitrary<string> {
  if (operationId === 'followFleet') return fc.constant('HEAD');
  return method === 'GET' ? fc.constantFrom('GET', 'GET', 'GET', 'HEAD') : fc.constant(method);
}

/** Queries that mean nothing. */
const strangeQuery: fc.Arbitrary<string | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom('', '?', '%', '=', '&&&', 'a[b]=c', '__proto__[limit]=5', 'LIMIT=x', 'access_token=x'),
  fc.constant(`x=${'y'.repeat(5000)}`),
  fc.webQueryParameters(),
  canary.map((mark) => `${mark}=${mark}&tag[${mark}]=${mark}`),
);

export const queryParameters = ({ operation }: Target) =>
  operation.parameters.filter((parameter) => parameter.in === 'query') as { name: string; schema: Schema }[];

function queriesOf(target: Target): fc.Arbitrary<string> {
  const parameters = queryParameters(target);
  const valuesIn = ({ name, schema }: (typeof parameters)[number]) =>
    name === 'cursor'
      ? fc.constantFrom('«cursor»', '«cursor back»')
      : target.schemas.valuesOf(schema).map((value) => encodeURIComponent(String(value)));
  return fc
    .subarray(parameters, { maxLength: Math.min(parameters.length, 3) })
    .chain((some) => fc.tuple(...some.map((each) => valuesIn(each).map((value) => `${each.name}=${value}`))))
    .map((pairs) => pairs.join('&'));
}

const charsets = ['', ';charset=utf-8', '; charset=UTF-8', '; charset="utf-8"', ' ; charset = utf8 '];
const contentTypes = (types: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...types), fc.constantFrom(...charsets))
    .map((parts): Header[] => [['Content-Type', parts.join('')]]);

const mediaRange = [
  'application/json',
  'text/markdown',
  'text/html',
  'text/event-stream',
  'text/*',
  '*/*',
  '*',
  'a/b',
  '',
];
const quality = ['', ';q=0', ';q=0.5', ';q=1.000', ';q=x', ';q=-1', '; charset=utf-8', ';version=1'];
const accept = fc.oneof(
  fc
    .array(fc.tuple(fc.constantFrom(...mediaRange), fc.constantFrom(...quality)), {
      minLength: 1,
      maxLength: 5,
    })
    .map((ranges) => ranges.map((range) => range.join('')).join(', ')),
  headerText,
);

/** `Accept` now and then, each header that has to be there, and every third of the others. */
function headersOf({ path, operation }: Target): fc.Arbitrary<Header[]> {
  const described = operation.parameters.flatMap(({ in: place, name, required }) => {
    const { taken, isNeeded } = headerValues(name, path);
    if (place !== 'header' || taken.length === 0) return [];
    const header = fc.constantFrom(...taken).map((value): Header[] => [[name, value]]);
    return [required || isNeeded ? header : sometimes(header)];
  });
  const accepted = sometimes(accept.map((value): Header[] => [['Accept', value]]));
  return fc.tuple(accepted, ...described).map((headers) => headers.flat());
}

const sometimes = (headers: fc.Arbitrary<Header[]>) => fc.oneof(fc.constant([]), fc.constant([]), headers);

const markedHeaders = fc
  .tuple(
    fc.constantFrom('User-Agent', 'Cookie', 'Referer', 'Origin', 'X-Request-Id', 'traceparent', 'Via'),
    canary,
  )
  .map(([name, mark]): Header[] => [[name, mark]]);

/** JSON as it is, spaced out, or with every character escaped; now and then compressed. */
function bodiesOf({ body, schemas, method }: Target): fc.Arbitrary<RequestBody | undefined> {
  // A body with a request that has no use for one.
  if (!body)
    return method === 'DELETE'
      ? fc.constantFrom(undefined, written('{}'), written('x'.repeat(5000)))
      : fc.constant(undefined);
  const encoding = fc.oneof(
    { weight: 9, arbitrary: fc.constant(undefined) },
    fc.constantFrom('gzip', 'deflate', 'br'),
  );
  return fc
    .tuple(schemas.valuesOf(body), fc.constantFrom(jsonOf, jsonOf, spacedOut, escaped), encoding)
    .map(([value, write, compressed]): RequestBody => ({ ...written(write(value)), compressed }));
}

export const written = (text: string): RequestBody => ({ text, bytes: 'utf8' });
export const jsonOf = (value: unknown): string => JSON.stringify(value) ?? 'null';
const spacedOut = (value: unknown) => `\r\n\t ${JSON.stringify(value, undefined, 2)} \n`;
const escaped = (value: unknown) =>
  jsonOf(value).replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
