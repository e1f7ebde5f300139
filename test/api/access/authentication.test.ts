import { afterAll, describe, expect, it, vi } from 'vitest';
import { expressAuthentication, onCredentialsEnd } from '../../../api/access/authentication.js';
import type { Caller } from '../../../api/access/caller.js';
import { LoginLimiter } from '../../../api/access/login-limiter.js';
import { serveRoutes } from '../../support/app.js';
import {
  type AuthenticationOptions,
  createAuthentication,
  signedInAs,
} from '../../support/authentication.js';
import { type Answer, createClient } from '../../support/client.js';
import { heldDelays } from '../../support/held-delays.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import type { Served } from '../../support/serve.js';

const name = 'Jürgen 🎉';
const secret = 'a:secret: with: colons 🎉';
const encode = (plain: string | Uint8Array) => Buffer.from(plain).toString('base64');
const good = encode(`${name}:${secret}`);

const callers = new Map<string, Caller>([
  ['writer', { ...userNamed('w'), scopes: ['blogs:write'] }],
  ['reader', { ...userNamed('r'), scopes: ['blogs:read'] }],
  ['chatter', { ...userNamed('c'), scopes: ['chat'] }],
  ['operator', { ...userNamed('a'), scopes: ['admin'] }],
]);

/** No call waits. */
const atOnce = async () => undefined;

const asJson = (value: unknown) => JSON.parse(JSON.stringify(value));

const servers: Served[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

const doors: [path: string, scheme: string, scopes?: string[]][] = [
  ['/chat', 'basic'],
  ['/v1/models', 'chat'],
  ['/admin', 'admin'],
  ['/session', 'session'],
  ['/write', 'bearer', ['blogs:write']],
  ['/read', 'bearer', ['blogs:read']],
];

async function start(options: AuthenticationOptions = {}) {
  const recording = createRecordingLog();
  const authentication = createAuthentication(recording.log, {
    loginLimiter: new LoginLimiter({ maxFailures: 1000 }),
    earlyLimiter: new LoginLimiter({ maxFailures: 1000 }),
    ...options,
    directory: {
      checkUser: (givenName, givenSecret) =>
        givenName === name && givenSecret === secret ? signedInAs(name) : undefined,
      findToken: async (token) => callers.get(token),
      checkToken: (token) => callers.get(token),
      hasUser: (given) => given === name,
      ...options.directory,
    },
  });
  const server = await serveRoutes((app) => {
    app.locals.authentication = authentication;
    for (const [path, scheme, scopes] of doors)
      app.get(path, async (request, response) => {
        const caller = await expressAuthentication(request, scheme, scopes);
        response.json(caller ?? 'nobody');
      });
    app.get('/attached', (request, _response, next) => void onCredentialsEnd(request, next));
  });
  servers.push(server);
  const client = createClient(server.url);
  return {
    recording,
    directory: authentication.directory,
    ask: (path: string, Authorization?: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
      client({
        path,
        headers: { ...headers, ...(Authorization !== undefined && { Authorization }) },
        ...(signal && { signal }),
      }),
  };
}

const { ask } = await start();

const closed = await start({ publicReads: false });

/** A refusal without what differs from request to request. */
const refusalOf = ({ status, headers, body }: Answer) => ({
  status,
  challenge: headers.get('www-authenticate'),
  body: { ...body, requestId: undefined },
});

describe('a client that leaves while its attempt waits', () => {
  it.each([
    ['/chat', `Basic ${encode('someone:else')}`],
    ['/write', 'Bearer unknown'],
    ['/session', undefined],
  ])('-> is refused at %s unchecked, and holds no place any more', async (path, authorization) => {
    const loginLimiter = new LoginLimiter({ maxFailures: 0, intervalMs: 60_000 });
    const isRefused = { code: 'rate_limited' };
    await expect(loginLimiter.recordFailure({ address: '127.0.0.1', secret: '' })).rejects.toMatchObject(
      isRefused,
    );
    const admit = vi.spyOn(loginLimiter, 'admit');
    const check = vi.fn();
    const directory = { checkUser: check, findToken: check, findSession: check };
    const { ask: askLimited, recording } = await start({ loginLimiter, directory });
    const left = new AbortController();
    const headers = { Cookie: `quillgate_session=${'x'.repeat(43)}` };
    const answer = askLimited(path, authorization, headers, left.signal);
    await vi.waitFor(() => expect(admit).toHaveBeenCalled(), patience);
    left.abort();
    await expect(answer).rejects.toThrow();
    await vi.waitFor(() => expect(recording.text()).toContain('rate_limited'), patience);
    // No time says whether the guess was right.
    expect(check).not.toHaveBeenCalled();
  });
});

describe('credentials', () => {
  const chatters = ['chat'];
  const operators = ['admin', 'chat', 'blogs:read', 'blogs:write'];

  it.each([
    ['/chat', `Basic ${good}`, { ...userNamed(name), scopes: chatters }],
    ['/v1/models', `Basic ${good}`, { ...userNamed(name), scopes: chatters }],
    ['/v1/models', 'Bearer chatter', callers.get('chatter')],
    ['/write', 'Bearer writer', callers.get('writer')],
    ['/read', undefined, 'nobody'],
    ['/read', 'Bearer chatter', callers.get('chatter')],
    ['/admin', 'Bearer operator', { ...userNamed('a'), scopes: operators }],
  ])('are right at %s: %j -> their owner is known', async (path, authorization, caller) => {
    const { status, body } = await ask(path, authorization);
    expect([status, body]).toEqual([200, asJson(caller)]);
  });

  it.each([
    ['/chat', 'Basic realm="chat", charset="UTF-8"', /takes the name and the secret of a chat user/],
    ['/write', 'Bearer realm="blogs"', /takes an access token \(Authorization: Bearer …\)/],
    ['/v1/models', 'Bearer realm="chat", Basic realm="chat", charset="UTF-8"', /scope chat/],
    ['/admin', 'Bearer realm="admin"', /scope admin/],
  ])('are missing or wrong at %s -> 401 that is always the same and says what it takes', async (...row) => {
    const [path, challenge, detail] = row;
    const missing = refusalOf(await ask(path));
    expect(missing).toMatchObject({ status: 401, challenge, body: { code: 'unauthorized' } });
    expect(missing.body).toMatchObject({ detail: expect.stringMatching(detail) });
    const wrong = [
      ...[encode(`${name}:`), encode(`:${secret}`), encode(`${name}:a`), encode(`${name}:${secret}x`)],
      ...[encode(`${name}:${secret}\0`), encode(`${name.toLowerCase()}:${secret}`), encode('someone:else')],
    ].map((encoded) => `Basic ${encoded}`);
    for (const authorization of ['', 'Bearer', 'Basic', ...wrong])
      expect(refusalOf(await ask(path, authorization)), authorization).toEqual(missing);
  });

  it.each(['Bearer x', 'bearer Writer', 'Bearer writer,', 'Bearer __proto__'])(
    'are a token that nobody has, %j -> 401 that calls it invalid, for reads too',
    async (authorization) => {
      for (const path of ['/write', '/read']) {
        const { status, challenge } = refusalOf(await ask(path, authorization));
        expect([status, challenge]).toEqual([401, 'Bearer realm="blogs", error="invalid_token"']);
      }
    },
  );

  it.each([
    ['/write', 'reader', 'blogs', 'blogs:write', 'blogs:read'],
    ['/v1/models', 'writer', 'chat', 'chat', 'blogs:write'],
    ['/admin', 'chatter', 'admin', 'admin', 'chat'],
  ])('are at %s the token of a %s -> 403 that says which scope is wanted', async (...row) => {
    const [path, token, realm, scope, has] = row;
    const { status, challenge, body } = refusalOf(await ask(path, `Bearer ${token}`));
    expect(status).toBe(403);
    expect(challenge).toBe(`Bearer realm="${realm}", error="insufficient_scope", scope="${scope}"`);
    expect(body).toMatchObject({
      code: 'insufficient_scope',
      detail: `This address needs an access token with the scope ${scope}; the scope of this one is ${has}.`,
    });
  });

  it.each([
    [undefined, 401],
    ['Bearer writer', 200],
    ['Bearer reader', 200],
    ['Bearer chatter', 403],
  ])('are %j where reads are closed -> %i', async (authorization, status) => {
    const response = await closed.ask('/read', authorization);
    expect(response.status).toBe(status);
    if (status === 403) expect(response.headers.get('www-authenticate')).toContain('scope="blogs:read"');
  });

  it('fail again and again, at all doors together -> are slowed, and right ones are not', async () => {
    const { ask: askLimited } = await start({ loginLimiter: new LoginLimiter({ delay: atOnce }) });
    const doors = ['/chat', '/write', '/v1/models', '/admin'];
    const guesses = Array.from({ length: 25 }, () => doors).flat();
    const guess = async (path: string) =>
      (await askLimited(path, path === '/chat' ? 'Basic eDp5' : 'Bearer wrong')).status;
    const statuses = await Promise.all(guesses.map(guess));
    expect(statuses.filter((status) => status === 401)).toHaveLength(30);
    expect(statuses.filter((status) => status === 429)).toHaveLength(70);

    const refused = await askLimited('/chat', 'Basic eDp5');
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    expect(refused.headers.get('www-authenticate')).toBeNull();

    // From the same address: what is right passes, and what is missing is only missing.
    expect((await askLimited('/chat', `Basic ${good}`)).status).toBe(200);
    expect((await askLimited('/write', 'Bearer writer')).status).toBe(200);
    expect((await askLimited('/write', 'Bearer reader')).status).toBe(403);
    expect((await askLimited('/chat')).status).toBe(401);
    const elsewhere = { 'X-Forwarded-For': '192.0.2.7' };
    expect((await askLimited('/chat', 'Basic eDp5', elsewhere)).status).toBe(401);
  });

  it('are right while guesses at their name wait -> are let in, in any spelling', async () => {
    const delays = heldDelays();
    const loginLimiter = new LoginLimiter({ maxFailures: 1, delay: delays.delay });
    const { ask: askLimited } = await start({ loginLimiter });
    await loginLimiter.recordFailure({ address: '127.0.0.1', name, secret: '' });
    const guesses = Array.from({ length: 20 }, (_, n) =>
      askLimited('/chat', `Basic ${encode(`${name}:${n}`)}`),
    );
    const right = askLimited('/chat', `Basic ${good}`);
    await vi.waitFor(() => expect(delays.waiting).toBe(21), patience);
    delays.passAll();
    expect((await right).status).toBe(200);
    await Promise.all(guesses);
    for (let n = 1; n <= 40; n += 1)
      expect((await askLimited('/chat', `bAsIc${' '.repeat(n)}${good}`)).status).toBe(200);
    expect(delays.waitsMs).toHaveLength(21);
  });

  it('are refused -> the log says whose and from where, and a name only if it is a user’s', async () => {
    const { ask: askNoted, recording } = await start({
      loginLimiter: new LoginLimiter({ maxFailures: 2, delay: atOnce }),
    });
    const elsewhere = { 'X-Forwarded-For': '192.0.2.7' };
    await askNoted('/chat', `Basic ${encode(`${name}:canary-wrong`)}`);
    await askNoted('/chat', `Basic ${encode('canary-secret-as-name:x')}`);
    await askNoted('/chat', 'Basic eDp5');
    await askNoted('/write', 'Bearer canary-token', elsewhere);
    await askNoted('/write', 'Bearer reader', elsewhere);
    await askNoted('/chat');
    await askNoted('/read');
    const here = expect.stringMatching(/127\.0\.0\.1$/);
    const lines = recording.lines.filter(({ msg }) => msg === 'login refused');
    expect(lines.map(({ code, address, user, requestId }) => ({ code, address, user, requestId }))).toEqual([
      { code: 'unauthorized', address: here, user: name, requestId: 'the-id' },
      { code: 'unauthorized', address: here, user: undefined, requestId: 'the-id' },
      { code: 'rate_limited', address: here, user: undefined, requestId: 'the-id' },
      { code: 'unauthorized', address: '192.0.2.7', user: undefined, requestId: 'the-id' },
      { code: 'insufficient_scope', address: '192.0.2.7', user: 'r', requestId: 'the-id' },
    ]);
    expect(recording.text()).not.toContain('canary');
  });

  it('are missing or right -> are not counted', async () => {
    const { ask: askLimited } = await start({ loginLimiter: new LoginLimiter({ maxFailures: 1 }) });
    for (let n = 0; n < 5; n++) {
      expect((await askLimited('/chat')).status).toBe(401);
      expect((await askLimited('/chat', `Basic ${good}`)).status).toBe(200);
      expect((await askLimited('/write', 'Bearer reader')).status).toBe(403);
      expect((await askLimited('/read')).status).toBe(200);
    }
    expect((await askLimited('/chat', 'Basic eDp5')).status).toBe(401);
    expect((await askLimited('/chat', 'Basic eDp5')).status).toBe(429);
  });

  it('are unknown before the users are loaded -> 500 to be tried again, and not counted', async () => {
    const { ask: askEarly, directory } = await start({
      directory: { loaded: false },
      loginLimiter: new LoginLimiter({ maxFailures: 2 }),
      earlyLimiter: new LoginLimiter({ maxFailures: 2, delay: atOnce }),
    });
    expect((await askEarly('/chat', `Basic ${good}`)).status).toBe(200);
    expect((await askEarly('/v1/models', 'Bearer chatter')).status).toBe(200);
    expect((await askEarly('/chat')).status).toBe(401);
    const answers = [
      await askEarly('/v1/models', 'Bearer unknown'),
      await askEarly('/chat', 'Basic eDp5'),
      await askEarly('/chat', `Basic ${encode(`${name}:x`)}`),
      ...(await Promise.all(Array.from({ length: 40 }, () => askEarly('/chat', 'Basic eDp5')))),
    ];
    for (const response of answers) {
      expect(response.headers.get('Retry-After')).toBe('2');
      expect(response.body).toMatchObject({ status: 500, code: 'internal', retryable: true });
    }
    directory.loaded = true;
    expect((await askEarly('/chat', 'Basic eDp5')).status).toBe(401);
    expect((await askEarly('/chat', `Basic ${encode(`${name}:x`)}`)).status).toBe(401);
  });

  it('cannot be checked -> the error is passed on unchanged', async () => {
    const { ask: askFailing } = await start({
      directory: { findToken: () => Promise.reject(new Error('database on fire')) },
      loginLimiter: new LoginLimiter({ maxFailures: 0 }),
    });
    const body = { code: 'internal' };
    expect(await askFailing('/write', 'Bearer x')).toMatchObject({ status: 500, body });
  });
});

describe('a user who is suspended', () => {
  it.each([
    ['/chat', `Basic ${good}`],
    ['/v1/models', `Basic ${good}`],
    ['/v1/models', 'Bearer chatter'],
    ['/admin', 'Bearer operator'],
    ['/write', 'Bearer writer'],
    ['/read', 'Bearer reader'],
  ])('asks at %s with %s -> 403 for as long, which is logged', async (path, authorization) => {
    const suspended = new Set([name, 'w', 'r', 'c', 'a']);
    const isSuspended = (given: string) => suspended.has(given);
    const { ask, recording } = await start({ directory: { isSuspended } });
    expect(await ask(path, authorization)).toMatchObject({ status: 403, body: { code: 'suspended' } });
    expect(recording.lines).toMatchObject([{ msg: 'login refused', code: 'suspended' }]);
    suspended.clear();
    expect((await ask(path, authorization)).status).toBe(200);
  });

  it('has a wrong secret -> 401, which does not tell', async () => {
    const { ask } = await start({ directory: { isSuspended: () => true } });
    expect((await ask('/chat', `Basic ${encode(`${name}:wrong`)}`)).status).toBe(401);
  });
});

describe('onCredentialsEnd', () => {
  /** A door whose requests stay until their credentials end; `end` takes those of everyone away. */
  async function startAttached() {
    let areGood = true;
    let isSuspended = false;
    const listeners = new Set<() => void>();
    const attached = Promise.withResolvers<void>();
    const door = await start({
      directory: {
        isSuspended: () => isSuspended,
        checkUser: (given) => (areGood ? signedInAs(given) : undefined),
        checkToken: (token) => (areGood ? callers.get(token) : undefined),
        onLoad: (listener) => {
          listeners.add(listener);
          attached.resolve();
          return () => void listeners.delete(listener);
        },
      },
    });
    const load = () => {
      for (const listener of listeners) listener();
    };
    const suspend = () => (isSuspended = true);
    return { ...door, load, attached: attached.promise, listeners, end: () => (areGood = false), suspend };
  }

  it.each([
    ['a user', `Basic ${good}`, 'Basic realm="chat", charset="UTF-8"'],
    ['a token', 'Bearer chatter', 'Bearer realm="chat"'],
  ])('%s is gone -> it is called, and no sooner', async (_, authorization, challenge) => {
    const { ask, load, attached, listeners, end } = await startAttached();
    const asked = ask('/attached', authorization);
    await attached;
    load();
    expect(listeners.size).toBe(1);
    end();
    load();
    const response = await asked;
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, challenge]);
    expect(listeners.size).toBe(0);
    // One that begins now, as after a long body, is refused at once.
    expect((await ask('/attached', authorization)).status).toBe(401);
  });

  it('its user is suspended -> it is called with that, and a request that begins then is refused', async () => {
    const { ask, load, attached, suspend } = await startAttached();
    const asked = ask('/attached', `Basic ${good}`);
    await attached;
    suspend();
    load();
    for (const response of [await asked, await ask('/attached', `Basic ${good}`)])
      expect(response).toMatchObject({ status: 403, body: { code: 'suspended' } });
  });
});
