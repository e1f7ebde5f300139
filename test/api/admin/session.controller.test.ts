import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { directoryOf } from '../../support/access-directory.js';
import { startApp } from '../../support/app.js';
import type { Answer, Sent } from '../../support/client.js';
import { MemorySessions } from '../../support/memory-sessions.js';

const store = new MemorySessions();
const sessions = directoryOf({ sessions: store });
const app = await startApp({
  sessions,
  variables: { TRUSTED_PROXIES: 'loopback', CORS_ORIGINS: '*' },
});
afterAll(app.close);
beforeEach(() => {
  store.isDown = false;
});

type Headers = Record<string, string>;
const sameOrigin = { 'Sec-Fetch-Site': 'same-origin' };
const ask = <Body>(method: string, headers: Headers = {}, sent: Sent = {}) =>
  app.ask<Body>({ path: '/admin/session', method, headers, ...sent });
const right = { name: 'ann', secret: 'secret' };
const signIn = <Body>(body: unknown = right, headers: Headers = {}) =>
  ask<Body>('POST', { ...sameOrigin, ...headers }, { body });
const cookieOf = ({ headers }: Pick<Answer, 'headers'>) => headers.getSetCookie()[0] ?? '';
const signedIn = async (name = 'ann') => {
  const [Cookie = ''] = cookieOf(await signIn({ name, secret: 'secret' })).split(';');
  return { Cookie, ...sameOrigin };
};

describe('POST /admin/session', () => {
  it('has the right secret -> a cookie for twelve hours, below /admin alone and for no script', async () => {
    const before = Date.now();
    const response = await signIn<{ user: object; expiresAt: string }>();
    const after = Date.now();
    expect(response.status).toBe(200);
    const { user, expiresAt } = response.body;
    expect(user).toEqual({ id: 'id of ann', name: 'ann' });
    const begun = Date.parse(expiresAt) - 12 * 3_600_000;
    expect([before, begun, after]).toEqual([before, begun, after].toSorted((a, b) => a - b));
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.getSetCookie()).toHaveLength(1);
    const [pair = '', ...attributes] = cookieOf(response).split('; ');
    expect(pair).toMatch(/^quillgate_session=[\w-]{43}$/);
    const isFixed = (one: string) => !one.startsWith('Expires=');
    expect(attributes.filter(isFixed).sort()).toEqual([
      'HttpOnly',
      'Max-Age=43200',
      'Path=/admin',
      'SameSite=Strict',
    ]);
    expect(app.logs()).not.toContain(pair.split('=')[1]);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('comes by TLS -> the cookie is sent by TLS alone', async () => {
    const cookie = cookieOf(await signIn(undefined, { 'X-Forwarded-Proto': 'https' }));
    expect(cookie.split('; ')).toContain('Secure');
  });

  it('has a wrong secret, or a name that nobody has -> 401 alike', async () => {
    const [wrong, nobody] = [
      await signIn({ name: 'ann', secret: 'x' }),
      await signIn({ name: 'eve', secret: 'x' }),
    ];
    expect([wrong.status, nobody.status]).toEqual([401, 401]);
    expect(wrong.body).toEqual({ ...(nobody.body as object), requestId: expect.any(String) });
    expect(wrong.headers.getSetCookie()).toEqual([]);
    expect(wrong.headers.get('www-authenticate')).toBe('Bearer realm="admin"');
  });

  it('is of one without the role, or from a page of another origin -> 403', async () => {
    const { status, headers } = await signIn({ name: 'user', secret: 'secret' });
    expect([status, headers.getSetCookie()]).toEqual([403, []]);
    const foreign: Headers[] = [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'cross-site', Authorization: 'Bearer operator' },
    ];
    for (const headers of foreign) {
      const response = await signIn(undefined, headers);
      expect(response).toMatchObject({ status: 403, body: { code: 'cross_origin' } });
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    expect((await ask('POST', {}, { body: right })).status).toBe(403);
  });

  it.each([
    [{ name: 'ann' }, '/secret'],
    [{ name: 'a'.repeat(513), secret: 'secret' }, '/name'],
    [{ name: 'ann', secret: '🎉'.repeat(513) }, '/secret'],
    [{ name: 'ann\0', secret: 'secret' }, '/name'],
    [{ name: 'ann', secret: 'secret', canary: 'canary' }, ''],
    [null, ''],
  ])('has the body %j -> 400 that points at %j', async (body, pointer) => {
    const response = await signIn(body);
    const refused = { code: 'invalid_request', errors: [{ pointer }] };
    expect(response).toMatchObject({ status: 400, body: refused });
    expect(response.text).not.toContain('canary');
  });

  it.each([
    [400, 'too deep', '['.repeat(100), {}],
    [400, 'too many values', `[${'1,'.repeat(300)}1]`, {}],
    [413, 'too large', JSON.stringify({ name: 'a'.repeat(20_000), secret: '' }), {}],
    [415, 'a form', 'name=ann&secret=secret', { 'Content-Type': 'application/x-www-form-urlencoded' }],
  ])('-> %i for a body that is %s', async (status, _what, body, headers: Headers) => {
    expect((await signIn(body, headers)).status).toBe(status);
  });

  it('has the right secret while the database is away -> 503', async () => {
    store.isDown = true;
    const response = await signIn();
    expect(response).toMatchObject({ status: 503, body: { code: 'database_unavailable' } });
    expect(response.headers.getSetCookie()).toEqual([]);
    expect((await signIn({ name: 'ann', secret: 'x' })).status).toBe(401);
  });

  it('is tried -> the log says who has signed in, and never with what', async () => {
    await signIn({ name: 'zoe', secret: 'canary-of-a-secret' });
    await signIn({ name: 'canary-of-a-name', secret: 'canary-of-a-secret' });
    expect(app.logs()).toContain('login refused');
    expect(app.logs()).not.toContain('canary-of');
    await signIn({ name: 'zoe', secret: 'secret' });
    expect(app.logs()).toMatch(/"user":"zoe".*signed in/);
  });
});

describe('GET /admin/session', () => {
  it('has a session -> who is signed in, also while the database is away', async () => {
    const headers = await signedIn();
    store.isDown = true;
    const { status, body } = await ask('GET', { Cookie: headers.Cookie });
    const user = { id: 'id of ann', name: 'ann' };
    expect([status, body]).toEqual([200, { user, expiresAt: expect.any(String) }]);
    const pools = await ask('GET', { Cookie: headers.Cookie }, { path: '/admin/pools' });
    expect(pools.status).toBe(200);
  });
});

describe('DELETE /admin/session', () => {
  it.each([
    ['', [401, 200, 200]],
    ['?everywhere=false', [401, 200, 200]],
    ['?everywhere=true', [401, 401, 200]],
  ])(
    'is asked with %j -> ends this session, or all of the user, and takes the cookie back',
    async (query, left) => {
      const sessions = [await signedIn('eve'), await signedIn('eve'), await signedIn('ann')];
      const response = await ask('DELETE', sessions[0], { path: `/admin/session${query}` });
      expect(response.status).toBe(204);
      expect(cookieOf(response)).toMatch(/^quillgate_session=; Path=\/admin; Expires=Thu, 01 Jan 1970/);
      const statuses = await Promise.all(sessions.map(async (headers) => (await ask('GET', headers)).status));
      expect(statuses).toEqual(left);
    },
  );

  it.each(['everywhere=yes', 'everywhere=', 'everywhere', 'everywhere=true&everywhere=false'])(
    'is asked with %s -> 400, and the session goes on',
    async (query) => {
      const headers = await signedIn();
      const response = await ask('DELETE', headers, { path: `/admin/session?${query}` });
      expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer: 'everywhere' }] } });
      expect((await ask('GET', headers)).status).toBe(200);
    },
  );

  it('is asked while the database is away -> 503, and the session goes on', async () => {
    const headers = await signedIn();
    store.isDown = true;
    expect((await ask('DELETE', headers)).status).toBe(503);
    expect((await ask('GET', headers)).status).toBe(200);
  });
});
