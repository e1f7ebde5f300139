import fc from 'fast-check';
import { providerIds, scopes } from '../../../shared/contracts/contract.js';
import type { Header } from './client.js';
import { visibleText } from './texts.js';

/** The facts that the document does not have: credentials that are right, ids that exist, and what headers may hold. */

/** So many posts stay, as many are deleted before the run, and as many chats are kept. */
export const numbered = 30;
const number = fc.nat(numbered - 1);

/** Few enough that some are made, named twice and removed again; the last ones stay. */
const removable = Array.from({ length: 20 }, (_, n) => `user ${n}`);
const userNames = [...removable, 'Zoë', '🎉', "'; drop table users --", '../x', 'a/b', '__proto__'];

/** Values of path parameters, by the path's beginning and, where it matters, the method. */
const steps: readonly [start: string, steps: fc.Arbitrary<string>][] = [
  ['DELETE /blogs/', fc.constant('«spare»')],
  [
    ' /blogs/',
    fc.tuple(fc.constantFrom('post', 'post', 'POST'), number).map(([name, n]) => `«${name} ${n}»`),
  ],
  [' /chat/', number.map((n) => `«chat ${n}»`)],
  [' /admin/requests/', number.map((n) => `«chat ${n}»`)],
  [' /v1/models/', fc.constantFrom('openai%2Fsim-echo', 'vertexai/sim-echo')],
  [' /admin/pools/', fc.constantFrom(...providerIds)],
  [' /admin/tokens/', fc.constant('«token»')],
  ['DELETE /admin/users/', fc.constantFrom(...removable.slice(0, 10).map(encodeURIComponent), 'owner')],
  ['PUT /admin/users/', fc.constantFrom(...userNames.map(encodeURIComponent), 'owner')],
  [' /admin/users/', fc.constantFrom(...userNames.map(encodeURIComponent))],
];

/** A step of the path that exists, and what stands before and after it. */
export const stepOf = (method: string, path: string): fc.Arbitrary<string> =>
  steps.find(([start]) => `${method} ${path}`.includes(start))?.[1] ?? fc.constant('');

type Credentials = { right: readonly string[]; weak: readonly string[] };
const writers = ['Bearer «writer»', 'bearer «writer»', 'BEARER    «writer»', 'Bearer «stored»'];
const outdated = ['Bearer «expired»', 'Bearer «revoked»'];

/** `Authorization` by the beginning of the path, and valid credentials of others. */
export function credentialsFor(method: string, path: string): Credentials {
  if (path.startsWith('/admin')) {
    const right = ['Bearer «operator»', 'bearer   «operator»'];
    return { right, weak: ['Bearer «writer»', 'Bearer «chatter»', 'Bearer «reader»'] };
  }
  if (/^\/(v1|usage)/.test(path)) {
    const right = ['Basic «user»', 'basic «user»', 'Bearer «chatter»', 'bearer  «chatter»'];
    return { right, weak: ['Bearer «reader»', 'Bearer «writer»', ...outdated] };
  }
  if (path.startsWith('/chat'))
    return { right: ['Basic «user»', 'BASIC  «user»'], weak: ['Bearer «writer»'] };
  return method === 'GET'
    ? { right: ['', ...writers, 'Bearer «reader»', 'Bearer «chatter»'], weak: [] }
    : { right: writers, weak: ['Bearer «reader»', 'Bearer «chatter»', ...outdated] };
}

const someOf = (of: readonly string[]) => fc.subarray([...of], { minLength: 1 });
const userName = visibleText(100).map((text) => text.replaceAll(/[:\p{Cc}]/gu, '-'));

/** Values of properties that mean something only if they name what exists, or must not hold up later requests. */
export const knownProperties: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  model: fc
    .tuple(fc.constantFrom(...providerIds), fc.constantFrom('sim-echo', 'sim-length', 'sim-latency-5'))
    .map((names) => names.join('/')),
  name: fc.oneof(fc.constantFrom(...userNames), userName),
  owner: fc.constantFrom(...userNames),
  // Half of them for others than operators: a token needs an operator as its owner.
  scopes: fc.oneof(...[scopes, scopes.filter((scope) => scope !== 'admin')].map(someOf)),
};

interface HeaderValues {
  readonly taken: readonly string[];
  /** Values that are refused. */
  readonly odd: readonly string[];
  /** Whether the operation takes no request without it, although the document says that it need not be there. */
  readonly isNeeded?: boolean;
}

const chatPreferences =
  'respond-async|respond-async, wait=5|Wait = 300|return=x|handling="STRICT", wait=5'.split('|');
const postPreferences = 'handling=strict|wait=1,Handling = "strict"; x=1|handling||=;,=|return=minimal'.split(
  '|',
);
const keys = Array.from({ length: 20 }, (_, n) => `key-${n}`);
const badTags = ['', ',', 'x', '"', '"a" "b"', '*, "a"', 'w/"a"', '"a b"', "'a'"];
const badModels = ['..', 'a b', '../../admin', '-x', 'x'.repeat(257), 'é', 'a\\b', '%2e%2e', 'sim-echo?x'];
const manyTags = Array.from({ length: 900 }, (_, n) => `"${n}"`).join();
const tags = ['*', ' * ', '"1-0"', '""', '"999999999-zzzzzzzzz"', manyTags];

/** The values of the headers that the document describes, by operation where that matters. */
export function headerValues(name: string, path: string): HeaderValues {
  const isChat = path.includes('chat');
  const values: Record<string, HeaderValues> = {
    Prefer: {
      taken: isChat ? chatPreferences : postPreferences,
      odd: isChat ? ['wait=0', 'wait=3601', 'wait=-1', 'respond-async, wait', 'wait="1e2"'] : [],
    },
    'Idempotency-Key': {
      taken: [...keys, '~'.repeat(255), '"quoted"', '__proto__'],
      odd: ['', 'a b', 'x'.repeat(256), 'é', '\xa0'],
    },
    'X-LLM': {
      taken: [...providerIds],
      odd: ['', 'OpenAI', 'openai,anthropic', '__proto__', 'constructor', 'azure'],
    },
    'X-LLM-Model': { taken: ['sim-echo', 'sim-length', 'sim-latency-5'], odd: badModels },
    'X-LLM-Fallback': {
      taken: ['none', 'bedrock', 'vertexai/sim-echo'],
      odd: ['nobody', 'openai openai', 'openai/..'],
    },
    'If-Match': path.startsWith('/admin')
      ? { taken: ['«etag»', '«etag»', '«etag»', '"99999999"'], odd: [], isNeeded: true }
      : { taken: ['«etag»', '"a" , , «etag»,', 'W/«etag»', ...tags], odd: badTags },
    'If-None-Match': { taken: ['«etag»', 'W/«etag»', '"a", «etag»', ...tags, ...badTags], odd: [] },
    'X-Stainless-Timeout': { taken: ['600', '0', 'x', ''], odd: [] },
    'X-Stainless-Read-Timeout': { taken: ['600.0', '0', 'x', ''], odd: [] },
  };
  return values[name] ?? { taken: [], odd: [] };
}

/** Headers without a meaning to the operations, in forms without a meaning. */
export const strangeHeaders: readonly Header[][] = [
  headersIn('Expect: 100-continue'),
  headersIn('Expect: the worst'),
  // Node answers nothing to what follows on the connection when that is no HTTP.
  headersIn('Upgrade: h2c', 'Connection: Upgrade, close'),
  headersIn('Range: bytes=0-0', 'X-HTTP-Method-Override: DELETE', 'If-Modified-Since: never'),
  headersIn('Host: evil.example:1', 'X-Forwarded-For: unknown, _hidden, 999.1.1.1, [::1]:80'),
  headersIn('Accept-Encoding: br;q=1, *;q=0', 'Accept-Charset: utf-7', `Accept-Language: ${'x'.repeat(300)}`),
  headersIn('__proto__: x', 'constructor: x', ...Array.from({ length: 200 }, (_, n) => `X-Many-${n}: x`)),
];

/** Headers that are more than Node reads, or bytes that no header may have. */
export const unreadableHeaders: readonly Header[][] = [
  headersIn(`X-Huge: ${'x'.repeat(20_000)}`),
  headersIn('X-Control: a\u0000b'),
  headersIn('X Space: x'),
  headersIn('Content-Length: -1'),
  headersIn('Transfer-Encoding: x', 'Connection: close'),
];

function headersIn(...lines: string[]): Header[] {
  return lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
}
