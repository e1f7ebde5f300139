import fc from 'fast-check';
import type { Header } from './client.js';
import { credentialsFor, headerValues, numbered, unreadableHeaders } from './known.js';
import type { Request, RequestBody } from './request.js';
import { authorization, jsonOf, queryParameters, type Target, written } from './requests.js';
import { type Schema, valuesBeyond } from './schemas.js';
import { anyValue, canary, headerText, nameCanary } from './texts.js';

/** A request of the operation with one thing about it bent; undefined where it has no such thing. */
type Mutation = (target: Target, request: Request) => fc.Arbitrary<Request> | undefined;

/** Ten ways to bend a request. */
export const mutations: readonly Mutation[] = [
  anotherMethod,
  anotherAddress,
  anotherId,
  wrongCredentials,
  wrongHeader,
  wrongMediaType,
  wrongQuery,
  wrongField,
  wrongText,
  tooLarge,
];

/** CONNECT is left out: it asks for a tunnel, and Node closes the connection. */
const methods = 'OPTIONS TRACE PROPFIND LOCK QUERY PURGE SOURCE post GETT X'.split(' ');

function anotherMethod(_: Target, request: Request) {
  return fc.constantFrom(...methods).map((method): Request => ({ ...request, method, odd: 'method' }));
}

const addresses = '/ * /% /%E0%A4%A /\xff /__proto__ /blogs/a/b /feed.json/ /feed /docs/%2e%2e/x'.split(' ');
const longAddresses = ['', `/${'a'.repeat(10_000)}`, `/${'%61'.repeat(3000)}`, `/${'a/'.repeat(3000)}`];
/** With the path in place of `$`. */
const around =
  '$/ /$ $// $%2f $%00 $;x=y $#x $/../$ /.$ /..$ /%2e%2e$ /v1$ /docs/..$ http://evil.example$ //evil.example$ $\u0001';

/** Addresses of no operation, or that one has by chance; or headers before which the address does not matter. */
function anotherAddress(_: Target, request: Request) {
  const { path } = request;
  const near = around.split(' ').map((address) => address.replaceAll('$', () => path));
  return fc.oneof(
    fc
      .constantFrom(...near, path.toUpperCase(), `${path} x`, ...addresses, ...longAddresses)
      .map((odd): Request => ({ ...request, path: odd, odd: 'address' })),
    canary.map((mark): Request => ({ ...request, path: `${path}/${mark}/${mark}`, odd: 'address' })),
    fc.constantFrom(...unreadableHeaders).map((others): Request => ({ ...request, others, odd: 'address' })),
  );
}

const idsThatCannotBe =
  "%00 % %zz %E0%A4%A %ff %ED%A0%80 %2e%2e ..%2f.. ..%5c 0 -1 1e9 NaN null __proto__ constructor '%20OR%201=1-- :id * . ~ \xe9";
const unknownIds = fc.oneof(
  fc.constantFrom(...idsThatCannotBe.split(' '), 'a'.repeat(10_000), '%61'.repeat(3000)),
  fc.nat(numbered - 1).map((n) => `«gone ${n}»`),
  fc
    .uuid()
    .chain((id) => fc.constantFrom(id, `${id}0`, `{${id}}`, id.replaceAll('-', ''), `${id}%00`, `%20${id}`)),
  canary,
  fc.webSegment().filter((segment) => !['', '.', '..'].includes(segment)),
);

/** Ids in one segment of the path; all of them have to be 404, or 400 if they cannot be decoded. */
function anotherId({ path, operation }: Target, request: Request) {
  if (!path.includes('{')) return undefined;
  // The names of users are any texts.
  const odd =
    path.includes('{name}') || operation.operationId === 'revokeToken'
      ? ('address' as const)
      : ('id' as const);
  return unknownIds.map((id): Request => ({ ...request, path: path.replace(/\{\w+\}/, id), odd }));
}

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`;
const malformed = [
  '',
  'Bearer',
  'Basic !!!',
  '«writer»',
  basic('no colon'),
  'Bearer «writer» x',
  'Bearer "«writer»"',
  `Bearer ${'A'.repeat(10_000)}`,
];
const wrongAuthorization = fc.oneof(
  fc.constantFrom(...malformed),
  canary.chain((mark) => fc.constantFrom(`Bearer ${mark}`, `Basic ${mark}`, basic(`${mark}:${mark}\0`))),
  headerText.map((any) => any.trim()),
);

/** Missing or unknown credentials, two at once, or those of others; a public operation has only unknown ones. */
function wrongCredentials({ method, path }: Target, request: Request) {
  const { right, weak } = credentialsFor(method, path);
  const having = (credentials: Header[]): Request => ({ ...request, credentials, odd: 'credentials' });
  return fc.oneof(
    ...(right.includes('') ? [] : [fc.constant(having([]))]),
    wrongAuthorization.map((value) => having([['Authorization', value]])),
    wrongAuthorization.map((value) =>
      having([...authorization('Bearer «writer»'), ['Authorization', value]]),
    ),
    ...(weak.length === 0
      ? []
      : [{ weight: 3, arbitrary: fc.constantFrom(...weak).map((value) => having(authorization(value))) }]),
  );
}

/** A header that the operation refuses, with a value of its list or twice with a canary. */
function wrongHeader({ path, operation }: Target, request: Request) {
  const refused = operation.parameters.flatMap(({ in: place, name }) => {
    const { odd } = headerValues(name, path);
    return place === 'header' && odd.length > 0 ? [{ name, odd }] : [];
  });
  if (refused.length === 0) return undefined;
  return fc
    .constantFrom(...refused)
    .chain(({ name, odd }) => {
      const values = fc.constantFrom(...odd).map((value): Header[] => [[name, value]]);
      const twice = canary.map((mark): Header[] => [
        [name, `${mark} `],
        [name, mark],
      ]);
      return fc.tuple(fc.constant(name), name === 'Prefer' ? values : fc.oneof(values, twice));
    })
    .map(([name, odd]): Request => {
      const others = request.own.filter(([other]) => other !== name);
      return { ...request, own: [...others, ...odd], odd: 'headers' };
    });
}

const wrongTypes =
  '|/|json|text/plain|text/json|application/xml|APPLICATION/JSON5|application/json-patch+json|multipart/form-data; boundary=x' +
  '|application/json; charset=utf-16|application/json; charset=latin1|application/json, application/json';

/** Media types of which none is JSON in UTF-8. */
function wrongMediaType({ body }: Target, request: Request) {
  if (!body) return undefined;
  const marked = canary.map((mark) => `application/${mark}; ${mark}="${mark}`);
  return fc
    .oneof(fc.constant(undefined), fc.constantFrom(...wrongTypes.split('|')), marked, headerText)
    .map((type) => ({
      ...request,
      contentType: type === undefined ? [] : [['Content-Type', type] as const],
      odd: 'media type' as const,
    }));
}

const undecodable = ['%', '%00', '%ff', '%ED%A0%80', '\xe9', '%D9%A3', 'a%00'];
const neverRight = '|0|-1|1.5|1e2|all|0x10| 1|99999999999999999999|TRUE|null|Draft|LTE.'.split('|');

/** A parameter with a value that its schema refuses, that cannot be decoded, or that stands there twice. */
function wrongQuery(target: Target, request: Request) {
  const parameters = queryParameters(target);
  if (parameters.length === 0) return undefined;
  return fc
    .constantFrom(...parameters)
    .chain(({ name, schema }) => {
      const beyond = valuesBeyond(target.schemas.resolved(schema)).map((value) =>
        encodeURIComponent(String(value).toWellFormed()),
      );
      const values = fc.oneof(fc.constantFrom(...undecodable, ...neverRight, ...beyond), canary);
      const twice = values.map((value) => `${value}&${name}=${value}`);
      return fc.oneof({ weight: 4, arbitrary: values }, twice).map((value) => `${name}=${value}`);
    })
    .map((wrong): Request => ({ ...request, query: request.query ? `${request.query}&${wrong}` : wrong }));
}

/** A field beyond its bounds, of a wrong type, missing or unknown; or all of the body of a wrong type. */
function wrongField({ body, schemas }: Target, request: Request) {
  if (!body || request.body === undefined) return undefined;
  const sound = JSON.parse(request.body.text) as Record<string, unknown>;
  const fields = Object.entries(body.properties ?? {});
  const replaced = fc
    .constantFrom(...fields)
    .chain(([name, schema]) =>
      wrongValues(schemas.resolved(schema)).map((value) => ({ ...sound, [name]: value })),
    );
  const without = fc.constantFrom(...fields).map(([name]) => ({ ...sound, [name]: undefined }));
  const more = fc
    .dictionary(fc.oneof(nameCanary, fc.constantFrom('', 'id', 'Content', '~/', 'constructor')), anyValue, {
      minKeys: 1,
    })
    .map((unknown) => ({ ...unknown, ...sound }));
  const values = fc.oneof({ weight: 4, arbitrary: replaced }, without, more, anyValue, fc.constant([sound]));
  return values.map((value): Request => ({ ...request, body: written(jsonOf(value)) }));
}

/** Values that are wrong for the schema, or within it for one of its parts. */
function wrongValues(schema: Schema): fc.Arbitrary<unknown> {
  const inside = Object.keys(schema.items?.properties ?? {});
  return fc.oneof(
    anyValue,
    ...valuesBeyond(schema).map((value) => fc.constant(value)),
    ...(schema.items ? [anyValue.map((value) => [value])] : []),
    ...inside.map((name) => anyValue.map((value) => [{ [name]: value }])),
  );
}

const noJson = [
  '',
  '\0',
  'NaN',
  '{,}',
  '['.repeat(100_000),
  '"'.repeat(999),
  '{"content":"\\ud83',
  'content=x&title=y',
];
const nested = (depth: number) => `"deep":${'['.repeat(depth)}1${']'.repeat(depth)}`;
/** Duplicates, prototypes, numbers beyond all bounds, nesting. */
const members = [
  ...['"content":5', '"messages":1', '"title":"t","title":null', '"__proto__":{"content":"x"}', '"n":1e400'],
  ...[`"n":${'9'.repeat(5000)}`, nested(31), nested(32), nested(33), nested(50_000)],
];
const withMember = (json: string, member: string) =>
  json === '{}' ? `{${member}}` : `${json.slice(0, -1)},${member}}`;

/** A text that is no JSON, or JSON of a kind that trips over parsers: `json-body.test.ts` has more. */
function wrongText({ body }: Target, request: Request) {
  if (!body || request.body === undefined) return undefined;
  const json = JSON.stringify(JSON.parse(request.body.text));
  const encoded: RequestBody[] = [
    { text: json, bytes: 'utf16le' },
    { text: `${json}\xe9\xff`, bytes: 'latin1' },
  ];
  return fc
    .oneof(
      fc.constantFrom(`\ufeff${json}`, `${json}x`, json.slice(0, -1), ...noJson).map(written),
      fc.oneof(canary, fc.string({ unit: 'binary', maxLength: 200 })).map(written),
      fc.constantFrom(...members).map((member) => written(withMember(json, member))),
      fc.constantFrom(...encoded),
    )
    .map((bent): Request => ({ ...request, body: bent }));
}

/** A byte more than a body may have, as it is or compressed to very little. */
function tooLarge({ body }: Target, request: Request) {
  if (!body || request.body === undefined) return undefined;
  const large = written(withMember(request.body.text, `"metadata":"${'x'.repeat(1_048_577)}"`));
  return fc
    .constantFrom<RequestBody>(large, { ...large, compressed: 'gzip' })
    .map((bent): Request => ({ ...request, body: bent }));
}
