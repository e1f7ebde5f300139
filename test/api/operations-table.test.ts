import { afterAll, describe, expect, it } from 'vitest';
import { describeApi } from '../../api/app.js';
import { parseConfig } from '../../shared/config/config.js';
import { basic, startApp } from '../support/app.js';
import { type OpenApiDocument, operationsOf } from '../support/openapi-document.js';

/** An operation of the OpenAPI document; operators' chat and posts are chat's and the blog's below `/admin`. */
interface Row {
  readonly method: string;
  readonly path: string;
  readonly address: string;
  readonly door: Door;
  /** The media type of its body; absent without one. */
  readonly bodyType: string | undefined;
  /** The methods of its address, as `Allow` lists them. */
  readonly allow: string;
}

/** The names of the credentials' schemes, as the document has them; `{}` needs no credentials. */
type Door = 'basic' | 'bearer basic' | 'bearer' | 'bearer {}' | 'bearer session' | 'session' | '';

const page = 'https://app.example.org';
const document = describeApi(parseConfig({}, 'config')) as OpenApiDocument;
const values: Record<string, string> = { id: crypto.randomUUID(), provider: 'openai', name: 'a' };
const methodsOf = (path: string) => {
  const described = Object.keys(document.paths[path] ?? {});
  return ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((name) =>
    described.includes(name.replace('HEAD', 'GET').toLowerCase()),
  );
};
const described: Row[] = operationsOf(document).map(({ path, method, operation }) => ({
  ...{ method: method.toUpperCase(), path },
  address: path.replaceAll(/\{(\w+)\}/g, (_, name) => values[name] ?? name),
  door: operation.security.map((each) => Object.keys(each)[0] ?? '{}').join(' ') as Door,
  bodyType: Object.keys(operation.requestBody?.content ?? {})[0],
  allow: methodsOf(path).join(', '),
}));
const ofOperators = described
  .filter(({ path }) => /^\/(chat|v1\/chat|blogs)/.test(path))
  .map(
    (row): Row => ({
      ...row,
      path: `/admin${row.path}`,
      address: `/admin${row.address}`,
      door: 'bearer session',
    }),
  );
const rows = [...described, ...ofOperators];

const app = await startApp({ variables: { CORS_ORIGINS: page, TRUSTED_PROXIES: 'loopback' } });
afterAll(app.close);

type Headers = Record<string, string>;
const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
const credentials = {
  nothing: async () => ({}),
  'a user': async () => ({ Authorization: basic('user') }),
  'an unknown token': async () => bearer('unknown'),
  'a token of chat and reads': async () => bearer('reader'),
  'a token of writes': async () => bearer('writer'),
  'a token of operators': async () => bearer('operator'),
  'a session': () => app.signIn(),
  'a session used by another site': () => app.signIn('cross-site'),
} satisfies Record<string, () => Promise<Headers>>;
type Credential = keyof typeof credentials;

type Verdict = 'open' | 'unauthorized' | 'insufficient_scope' | 'cross_origin';
const [open, unknown, scope]: Verdict[] = ['open', 'unauthorized', 'insufficient_scope'];

/** The statuses of a change with each of the credentials, in their order. */
const doors: Record<Door, { challenge: string; verdicts: (Verdict | undefined)[] }> = {
  basic: {
    challenge: 'Basic realm="chat", charset="UTF-8"',
    verdicts: [unknown, open, unknown, unknown, unknown, unknown, unknown, unknown],
  },
  'bearer basic': {
    challenge: 'Bearer realm="chat", Basic realm="chat", charset="UTF-8"',
    verdicts: [unknown, open, unknown, open, scope, scope, unknown, unknown],
  },
  bearer: {
    challenge: 'Bearer realm="blogs"',
    verdicts: [unknown, unknown, unknown, scope, open, scope, unknown, unknown],
  },
  'bearer {}': {
    challenge: 'Bearer realm="blogs"',
    verdicts: [open, unknown, unknown, open, open, open, open, open],
  },
  'bearer session': {
    challenge: 'Bearer realm="admin"',
    verdicts: [unknown, unknown, unknown, scope, scope, open, open, 'cross_origin'],
  },
  session: {
    challenge: 'Bearer realm="admin"',
    verdicts: [unknown, unknown, unknown, unknown, unknown, unknown, open, 'cross_origin'],
  },
  // Signing in has its credentials in its body.
  '': { challenge: '', verdicts: [] },
};
/** A page elsewhere cannot read what it asks for with a session, and so it may ask. */
const verdictOf = (verdict: Verdict | undefined, method: string) =>
  verdict === 'cross_origin' && method === 'GET' ? 'open' : verdict;

/** Credentials that open it. */
const rights: Record<Door, Credential> = {
  basic: 'a user',
  'bearer basic': 'a token of chat and reads',
  bearer: 'a token of writes',
  'bearer {}': 'nothing',
  'bearer session': 'a token of operators',
  session: 'a session',
  '': 'nothing',
};

let clients = 0;
/** Sends a request from a network of its own: failed logins are counted by that. */
async function ask(
  { address, method }: Pick<Row, 'address' | 'method'>,
  headers: Headers = {},
  body?: string,
) {
  clients += 1;
  const from = { 'X-Forwarded-For': `2001:db8:${clients.toString(16)}::1` };
  const init = { method, headers: { ...from, ...headers }, ...(body !== undefined && { body }) };
  const leaving = new AbortController();
  const response = await fetch(app.url + address, { ...init, signal: leaving.signal });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  const text = isStream ? '' : await response.text();
  leaving.abort();
  return { status: response.status, headers: response.headers, text };
}
type Answer = Awaited<ReturnType<typeof ask>>;

const isRefused = ({ status }: Answer) => status === 401 || status === 403;

/** The code of a problem, or of OpenAI's error; asserts that no cache may store it. */
function codeOf({ path }: Row, { headers, text }: Answer): string {
  const isOpenAi = path.startsWith('/v1/');
  expect(headers.get('content-type')).toMatch(
    isOpenAi ? /^application\/json/ : /^application\/problem\+json/,
  );
  expect(headers.get('cache-control')).toBe('no-store');
  const body = JSON.parse(text);
  return isOpenAi ? body.error.code : body.code;
}

describe.each(rows)('$method $path', (row) => {
  const { method, address, door, bodyType, path } = row;
  const json: Headers = bodyType === undefined ? {} : { 'Content-Type': bodyType };
  const right = async () => ({
    ...(await credentials[rights[door]]()),
    'Sec-Fetch-Site': 'same-origin',
    'X-LLM': 'openai',
  });

  it('is asked with any credentials -> it opens to those that its description names, and to no others', async () => {
    const { verdicts, challenge } = doors[door];
    const body = bodyType === undefined ? undefined : '{}';
    for (const [place, [name, make]] of Object.entries(credentials).entries()) {
      const verdict = verdictOf(verdicts[place], method);
      const answer = await ask(row, { ...json, ...(await make()) }, body);
      if (verdict === undefined) continue;
      expect([name, isRefused(answer) ? codeOf(row, answer) : 'open']).toEqual([name, verdict]);
    }
    if (verdicts[0] !== 'unauthorized') return;
    expect((await ask(row, json)).headers.get('www-authenticate')).toBe(challenge);
  });

  if (bodyType !== undefined)
    it('is sent what is no body of it -> 415 or 400', async () => {
      const wrong = [
        ['text/plain', '{}', 415, 'unsupported_media_type'],
        [bodyType, '{', 400, 'invalid_json'],
        [bodyType, '[]', 400, 'invalid_request'],
      ] as const;
      for (const [type, body, status, code] of wrong) {
        const answer = await ask(row, { ...(await right()), 'Content-Type': type }, body);
        expect([body, answer.status, codeOf(row, answer)]).toEqual([body, status, code]);
      }
    });

  it('is asked at another spelling of its address -> there is nothing', async () => {
    for (const other of [`${address}/`, address.replace(/[a-z]/, (letter) => letter.toUpperCase())])
      expect([other, (await ask({ method, address: other }, await right())).status]).toEqual([other, 404]);
  });

  it('is asked by a page of another origin -> what it may is for the configured ones, and never for those of operators', async () => {
    const isOfOperators = path.startsWith('/admin');
    const isPublic = door === 'bearer {}';
    for (const [Origin, allowed] of [
      [page, page],
      ['https://other.example', isPublic ? '*' : null],
    ] as const) {
      const preflight = { Origin, 'Access-Control-Request-Method': method };
      const expected = isOfOperators ? null : allowed;
      const { headers } = await ask({ address, method: 'OPTIONS' }, preflight);
      expect(headers.get('access-control-allow-origin'), Origin).toBe(expected);
      const answer = await ask(row, { ...json, Origin });
      const read = isPublic ? '*' : expected;
      expect(answer.headers.get('access-control-allow-origin'), Origin).toBe(read);
    }
  });
});

describe.each(rows.filter(({ path }, place) => rows.findIndex((row) => row.path === path) === place))(
  '$path',
  (row) => {
    it('is asked by another method -> 405 with those that it has', async () => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        if (row.allow.includes(method)) continue;
        const answer = await ask({ ...row, method });
        expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, row.allow]);
        expect(codeOf(row, answer)).toBe('method_not_allowed');
      }
    });
  },
);
