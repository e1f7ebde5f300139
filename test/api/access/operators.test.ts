import { afterAll, describe, expect, it } from 'vitest';
import { expressAuthentication } from '../../../api/access/authentication.js';
import { LoginLimiter } from '../../../api/access/login-limiter.js';
import { mayStillOperate, refuseCrossOrigin } from '../../../api/access/operators.js';
import { Failure } from '../../../shared/failures.js';
import { serveRoutes } from '../../support/app.js';
import { type AuthenticationOptions, createAuthentication } from '../../support/authentication.js';
import { createClient, type Sent } from '../../support/client.js';
import { userNamed } from '../../support/identities.js';
import { createRecordingLog } from '../../support/recording-log.js';
import type { Served } from '../../support/serve.js';

const key = 'k'.repeat(43);
const unknown = 'u'.repeat(43);
const session = { digest: Buffer.alloc(32), expiresAt: new Date(0) };
const owner = { ...userNamed('ann'), scopes: ['admin'] as const, session };
const bot = { ...userNamed('bot'), scopes: ['admin'] as const };

const servers: Served[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

async function start(options: AuthenticationOptions = {}) {
  const recording = createRecordingLog();
  const lookedUp: string[] = [];
  const authentication = createAuthentication(recording.log, {
    ...options,
    directory: {
      checkToken: (token) => {
        if (token === 'bot') return bot;
        return token === 'writer' ? { ...bot, scopes: ['blogs:write'] } : undefined;
      },
      findSession: async (given) => void lookedUp.push(given),
      checkSession: (given) => {
        if (given === 'b'.repeat(43)) return bot;
        return given === key ? owner : undefined;
      },
      ...options.directory,
    },
  });
  const server = await serveRoutes((app) => {
    app.locals.authentication = authentication;
    app.all('/admin/cross', refuseCrossOrigin, (_request, response) => void response.json('passed'));
    app.all('/admin/:scheme', async (request, response) => {
      const caller = await expressAuthentication(request, request.params.scheme);
      response.json({ name: caller?.name, scopes: caller?.scopes, isStill: mayStillOperate(request) });
    });
  });
  servers.push(server);
  const client = createClient(server.url);
  const ask = (headers: Record<string, string>, sent: Sent = {}) =>
    client<Record<string, unknown>>({ path: '/admin/admin', headers, ...sent });
  return { ask, recording, lookedUp, host: new URL(server.url).host };
}

const Cookie = `quillgate_session=${key}`;
const operatorScopes = ['admin', 'chat', 'blogs:read', 'blogs:write'];
const { ask, host, lookedUp, recording } = await start();

describe('an operator', () => {
  it.each([
    ['a session', { Cookie }, 'ann'],
    ['a token', { Authorization: 'Bearer bot' }, 'bot'],
    [
      "a session beside a cookie of another host's",
      { Cookie: `quillgate_session=${unknown}; ${Cookie}; quillgate_session=x` },
      'ann',
    ],
    ['a token beside a session', { Authorization: 'Bearer bot', Cookie }, 'bot'],
    [
      'a token beside a session that is over',
      { Authorization: 'Bearer bot', Cookie: 'quillgate_session=x' },
      'bot',
    ],
  ])(
    'comes with %s -> may do all that the console can',
    async (_what, headers: Record<string, string>, name) => {
      expect(await ask(headers)).toMatchObject({
        status: 200,
        body: { name, scopes: operatorScopes, isStill: true },
      });
    },
  );

  it.each([
    ['an unknown session', { Cookie: `quillgate_session=${unknown}` }, 401],
    ['a malformed one', { Cookie: 'quillgate_session=x' }, 401],
    ['sessions of two users', { Cookie: `${Cookie}; quillgate_session=${'b'.repeat(43)}` }, 401],
    ['a session beside a bad token', { Cookie, Authorization: 'Bearer bad' }, 401],
    ['a session beside an empty header', { Cookie, Authorization: '' }, 401],
    ['a session beside Basic', { Cookie, Authorization: `Basic ${btoa('a:b')}` }, 401],
  ])('comes with %s -> is nobody', async (_what, headers: Record<string, string>, status) => {
    const answer = await ask(headers);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="admin"/);
  });

  it('comes with any of those -> the database is asked only for a key of the right form that is not known', async () => {
    expect(new Set(lookedUp)).toEqual(new Set([unknown]));
    expect(recording.text()).not.toContain(unknown);
    expect(recording.text()).not.toContain(key);
  });

  it('comes with unknown sessions -> limited like failed logins; one of a known session is not', async () => {
    const limited = await start({
      loginLimiter: new LoginLimiter({ maxFailures: 2, windowSeconds: 600 }),
    });
    const guess = (at: number) => ask_(limited, `quillgate_session=${String(at).repeat(43)}`);
    expect([await guess(1), await guess(2), await guess(3)]).toEqual([401, 401, 429]);
    expect(await ask_(limited, Cookie)).toBe(200);
    expect(limited.lookedUp).toHaveLength(3);
  });

  it('comes with a session that the database cannot look up -> 503, and no refusal', async () => {
    const down = await start({
      directory: { findSession: () => Promise.reject(new Failure('database_unavailable')) },
    });
    const answer = await down.ask({ Cookie: `quillgate_session=${unknown}` });
    expect(answer).toMatchObject({ status: 503, body: { code: 'database_unavailable' } });
    expect(down.recording.text()).not.toContain('login refused');
  });

  it('comes with a session that ends -> is none any more', async () => {
    let known = true;
    const ending = await start({ directory: { checkSession: () => (known ? owner : undefined) } });
    expect((await ending.ask({ Cookie })).body.isStill).toBe(true);
    const late = await start({
      directory: { checkSession: () => undefined, findSession: async () => owner },
    });
    expect((await late.ask({ Cookie })).body.isStill).toBe(false);
    known = false;
    expect((await ending.ask({ Cookie })).status).toBe(401);
  });
});

const ask_ = async ({ ask }: Awaited<ReturnType<typeof start>>, Cookie: string) =>
  (await ask({ Cookie })).status;

describe('the owner of a session', () => {
  it('comes with a token -> is none', async () => {
    const path = '/admin/session';
    expect(await ask({ Cookie }, { path })).toMatchObject({ status: 200, body: { name: 'ann' } });
    expect(await ask({ Cookie, Authorization: 'Bearer bad' }, { path })).toMatchObject({ status: 200 });
    expect(await ask({ Authorization: 'Bearer bot' }, { path })).toMatchObject({ status: 401 });
  });
});

describe('a change with a session', () => {
  const same: [string, Record<string, string>][] = [
    ['Sec-Fetch-Site', { 'Sec-Fetch-Site': 'same-origin' }],
    [
      'Sec-Fetch-Site, whatever a proxy makes of the host',
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://console.example' },
    ],
    ['Origin', { Origin: `http://${host}` }],
    ['Origin, behind a proxy that ends TLS', { Origin: `https://${host}` }],
    [
      'Origin, with the host that a trusted proxy names',
      { Origin: 'https://console.example', 'X-Forwarded-Host': 'console.example:443' },
    ],
  ];
  const other: [string, Record<string, string>][] = [
    ['neither header', {}],
    ['a page of another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['a page of another host of the site', { 'Sec-Fetch-Site': 'same-site', Origin: `http://${host}` }],
    ['no page', { 'Sec-Fetch-Site': 'none' }],
    ['a page of another origin', { Origin: 'https://evil.example' }],
    ['another port', { Origin: 'http://127.0.0.1:1' }],
    ['no origin', { Origin: 'null' }],
    ['what is no origin', { Origin: host }],
    ['a host that begins like ours', { Origin: `http://${host}.evil.example` }],
    [
      'a page without TLS, where the request has it',
      { Origin: `http://${host}`, 'X-Forwarded-Proto': 'https' },
    ],
  ];

  it.each(same)('comes with %s -> is let through', async (_what, headers) => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect(await ask({ Cookie, ...headers }, { method }), method).toMatchObject({ status: 200 });
    expect(await ask(headers, { method: 'POST', path: '/admin/cross' })).toMatchObject({ status: 200 });
  });

  it.each(other)('comes from %s -> is refused', async (_what, headers) => {
    const refusal = { status: 403, body: { code: 'cross_origin' } };
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      expect(await ask({ Cookie, ...headers }, { method }), method).toMatchObject(refusal);
    expect(await ask(headers, { method: 'POST', path: '/admin/cross' })).toMatchObject(refusal);
    // Reading is what the cookie itself is not sent for; and no browser adds a token.
    expect(await ask({ Cookie, ...headers })).toMatchObject({ status: 200 });
    const Authorization = 'Bearer bot';
    expect(await ask({ Authorization, ...headers }, { method: 'POST' })).toMatchObject({ status: 200 });
  });
});
