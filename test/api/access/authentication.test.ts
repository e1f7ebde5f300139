import { createConnection } from 'node:net';
import { text } from 'node:stream/consumers';
import express from 'express';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { expressAuthentication, onCredentialsEnd } from '../../../api/access/authentication.js';
import type { Caller } from '../../../api/access/caller.js';
import { LoginLimiter } from '../../../api/access/login-limiter.js';
import { problemHandler } from '../../../api/http/problem.js';
import {
  type AuthenticationOptions,
  createAuthentication,
  signedInAs,
} from '../../support/authentication.js';
import { heldDelays } from '../../support/held-delays.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { type Served, serve } from '../../support/serve.js';

const name = 'Jürgen 🎉';
const secret = 'a:secret: with: colons 🎉';
const encode = (plain: string | Uint8Array) => Buffer.from(plain).toString('base64');
const good = encode(`${name}:${secret}`);

const callers = new Map<string, Caller>([
  ['writer', { ...userNamed('w'), scopes: ['blogs:write'] }],
  ['reader', { ...userNamed('r'), scopes: ['blogs:read'] }],
  ['chatter', { ...userNamed('c'), scopes: ['chat'] }],
  ['operator', { ...userNamed('a'), scopes: ['admin'] }],
  ['!odd~token=/"', { ...userNamed('o'), scopes: ['blogs:write', 'blogs:read'] }],
]);

/** Nobody waits. */
const atOnce = async () => undefined;

const asJson = (value: unknown) => JSON.parse(JSON.stringify(value));

const servers: Served[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

async function start(options: AuthenticationOptions = {}) {
  const recording = createRecordingLog();
  const app = express().set('trust proxy', 'loopback');
  app.use((_request, response, next) => next(void response.set('X-Request-Id', 'the-id')));
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
  app.locals.authentication = authentication;
  const door = (path: string, scheme: string, scopes?: string[]) =>
    app.get(path, async (request, response) => {
      const caller = await expressAuthentication(request, scheme, scopes);
      response.json(caller ?? 'nobody');
    });
  door('/chat', 'basic');
  door('/v1/models', 'chat');
  door('/admin', 'admin');
  door('/session', 'session');
  door('/write', 'bearer', ['blogs:write']);
  app.get('/attached', (request, _response, next) => void onCredentialsEnd(request, next));
  door('/read', 'bearer', ['blogs:read']);
  app.use(problemHandler(createRecordingLog().log));
  const server = await serve(app);
  servers.push(server);
  return {
    recording,
    directory: authentication.directory,
    port: server.port,
    ask: (
      path: string,
      authorization?: string,
      headers: Record<string, string> = {},
      signal: AbortSignal | null = null,
    ) =>
      fetch(server.url + path, {
        signal,
        headers: authorization === undefined ? headers : { ...headers, Authorization: authorization },
      }),
  };
}

const { ask, port } = await start();

describe('a 401', () => {
  it.each([
    [
      '/chat',
      'This address takes the name and the secret of a chat user (HTTP Basic), and they are missing or wrong.',
    ],
    [
      '/write',
      'This address takes an access token (Authorization: Bearer …), and it is missing, wrong, expired or revoked.',
    ],
  ])('says which credentials %s takes', async (path, detail) => {
    const challenges = [undefined, `Basic ${encode('someone:else')}`, 'Bearer unknown'];
    for (const authorization of challenges) {
      const response = await ask(path, authorization);
      expect(await response.json()).toMatchObject({ status: 401, code: 'unauthorized', detail });
    }
  });
});
const closed = await start({ publicReads: false });

/** The status of a request whose header lines are sent as they are. */
async function askRaw(path: string, ...lines: string[]): Promise<number> {
  const socket = createConnection(port, '127.0.0.1');
  socket.end(
    [`GET ${path} HTTP/1.1`, 'Host: x', 'Connection: close', ...lines, '', ''].join('\r\n'),
    'latin1',
  );
  return Number((await text(socket)).split(' ')[1]);
}

/** The body without what differs from request to request. */
const bodyOf = async (response: Response) => ({
  ...((await response.json()) as object),
  requestId: undefined,
});

const nobodyKnows = await bodyOf(await ask('/chat'));
const wrongToken = await bodyOf(await ask('/write'));

describe('a client that leaves while its attempt waits', () => {
  it.each([
    ['/chat', `Basic ${encode('someone:else')}`],
    ['/write', 'Bearer unknown'],
    ['/session', undefined],
  ])('is refused at %s unchecked, and holds no place any more', async (path, authorization) => {
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

describe('expressAuthentication, basic', () => {
  it.each([`Basic ${good}`, `basic ${good}`, `BASIC   ${good}`, `Basic ${good.replace(/=+$/, '')}`])(
    'knows the user by %j',
    async (authorization) => {
      const response = await ask('/chat', authorization);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual(asJson({ ...userNamed(name), scopes: ['chat'] }));
    },
  );

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme alone', 'Basic'],
    ['the scheme and a blank', 'Basic '],
    ['no blank', `Basic${good}`],
    ['a tab', `Basic\t${good}`],
    ['another scheme', `Bearer ${good}`],
    ['a token', 'Bearer writer'],
    ['two credentials', `Basic ${good} ${good}`],
    ['two schemes', `Basic ${good}, Basic ${good}`],
    ['plain text', `Basic ${encodeURIComponent(name)}:secret`],
    ['what is not base64', 'Basic %%%%'],
    ['padding alone', 'Basic ===='],
    ['no colon', `Basic ${encode(name)}`],
    ['a colon alone', `Basic ${encode(':')}`],
    ['an empty secret', `Basic ${encode(`${name}:`)}`],
    ['an empty name', `Basic ${encode(`:${secret}`)}`],
    ['the secret up to its colon', `Basic ${encode(`${name}:a`)}`],
    ['a secret that goes on', `Basic ${encode(`${name}:${secret}x`)}`],
    ['a NUL at the end', `Basic ${encode(`${name}:${secret}\0`)}`],
    ['another case of the name', `Basic ${encode(`${name.toLowerCase()}:${secret}`)}`],
    ['Latin-1', `Basic ${encode(Buffer.from(`${name}:${secret}`, 'latin1'))}`],
    ['bytes that are not UTF-8', `Basic ${encode(Buffer.from([0xff, 0x3a, 0xfe]))}`],
    ['10 KB of base64', `Basic ${encode('x:'.repeat(3750))}`],
    ['10 KB of blanks', `Basic ${' '.repeat(10_000)}x!`],
    ['10 KB of blanks before what is right', `Basic ${' '.repeat(10_000)}${good}`],
    ['10 KB of padding', `Basic x${'='.repeat(10_000)}!`],
  ])('refuses %s, and says how to do it', async (_, authorization) => {
    const response = await ask('/chat', authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Basic realm="chat", charset="UTF-8"');
    expect(await bodyOf(response)).toEqual(nobodyKnows);
  });

  it('knows names and secrets as long as they may be', async () => {
    const long = { name: '🎉'.repeat(128), secret: '🎉'.repeat(512) };
    const checkUser = (...given: string[]) =>
      given[0] === long.name && given[1] === long.secret ? signedInAs('long') : undefined;
    const { ask: askLong } = await start({ directory: { checkUser } });
    const response = await askLong('/chat', `Basic ${encode(`${long.name}:${long.secret}`)}`);
    expect(response.status).toBe(200);
  });

  it('takes white space around the credentials, and no bytes that are not ASCII among them', async () => {
    expect(await askRaw('/chat', `Authorization: \t Basic ${good} \t `)).toBe(200);
    expect(await askRaw('/chat', `Authorization: Basic ${good}\xa0`)).toBe(401);
  });
});

describe('expressAuthentication, bearer', () => {
  it.each(['Bearer writer', 'bearer writer', 'BEARER    writer', 'Bearer !odd~token=/"'])(
    'knows the owner by %j',
    async (authorization) => {
      const response = await ask('/write', authorization);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual(asJson(callers.get(authorization.replace(/.* /, ''))));
    },
  );

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the scheme alone', 'Bearer'],
    ['an empty token', 'Bearer   '],
    ['no blank', 'Bearerwriter'],
    ['two tokens', 'Bearer writer writer'],
    ['a token that is not ASCII', 'Bearer writ\xe9r'],
    ['credentials of chat', `Basic ${good}`],
    ['the token as Basic', `Basic ${encode('writer:writer')}`],
    ['10 KB', `Bearer ${'x'.repeat(10_000)}`],
    ['10 KB of blanks before what is right', `Bearer ${' '.repeat(10_000)}writer`],
  ])('refuses %s, without a word on a token', async (_, authorization) => {
    const response = await ask('/write', authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="blogs"');
    expect(await bodyOf(response)).toEqual(wrongToken);
  });

  it.each(['Bearer x', 'bearer Writer', 'Bearer writer,', 'Bearer __proto__'])(
    'refuses the token of %j',
    async (authorization) => {
      for (const path of ['/write', '/read']) {
        const response = await ask(path, authorization);
        expect(response.status).toBe(401);
        expect(response.headers.get('www-authenticate')).toBe('Bearer realm="blogs", error="invalid_token"');
        expect(await bodyOf(response)).toEqual(wrongToken);
      }
    },
  );

  it('lets everybody read in public, and knows those who say who they are', async () => {
    expect(await (await ask('/read')).json()).toBe('nobody');
    for (const token of ['writer', 'reader', 'chatter'])
      expect(await (await ask('/read', `Bearer ${token}`)).json()).toEqual(asJson(callers.get(token)));
    for (const wrong of ['', `Basic ${good}`, 'Bearer']) expect((await ask('/read', wrong)).status).toBe(401);
  });

  it('lets only tokens that may read or write read where reads are closed', async () => {
    expect((await closed.ask('/read')).status).toBe(401);
    expect((await closed.ask('/read', 'Bearer writer')).status).toBe(200);
    expect((await closed.ask('/read', 'Bearer reader')).status).toBe(200);
    const refused = await closed.ask('/read', 'Bearer chatter');
    expect(refused.status).toBe(403);
    expect(refused.headers.get('www-authenticate')).toContain('scope="blogs:read"');
  });
});

describe('expressAuthentication, chat', () => {
  const challenges = 'Bearer realm="chat", Basic realm="chat", charset="UTF-8"';
  const path = '/v1/models';

  it.each([`Basic ${good}`, 'Bearer chatter', 'bearer   chatter'])('takes %j', async (authorization) => {
    const response = await ask(path, authorization);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ scopes: ['chat'] });
  });

  it.each([
    ['no header', undefined],
    ['an unknown token', 'Bearer x'],
    ['two tokens', 'Bearer chatter chatter'],
    ['two schemes', `Bearer chatter, Basic ${good}`],
    ['a token as the secret', `Basic ${encode('chatter:chatter')}`],
    ['a token without a scheme', 'chatter'],
  ])('refuses %s, and says that it takes both kinds', async (_, authorization) => {
    const response = await ask(path, authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe(challenges);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining('scope chat') });
  });

  it('knows no token where only users may chat', async () => {
    expect((await ask('/chat', 'Bearer chatter')).status).toBe(401);
  });

  it('says of tokens, too, that it may not know them yet', async () => {
    const { ask: askEarly } = await start({ directory: { loaded: false } });
    expect((await askEarly(path, 'Bearer chatter')).status).toBe(200);
    const early = await askEarly(path, 'Bearer unknown');
    expect(early.status).toBe(500);
    expect(await early.json()).toMatchObject({ code: 'internal', retryable: true });
  });
});

describe('expressAuthentication, admin', () => {
  const path = '/admin';

  it('takes a token with the scope admin', async () => {
    const response = await ask(path, 'Bearer operator');
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      scopes: ['admin', 'chat', 'blogs:read', 'blogs:write'],
    });
  });

  it.each([
    ['no header', undefined],
    ['an unknown token', 'Bearer x'],
    ['the name and the secret of a user', `Basic ${good}`],
    ['the token as a secret', `Basic ${encode('operator:operator')}`],
    ['the token and more', 'Bearer operator, Bearer operator'],
  ])('refuses %s, and offers no Basic', async (_, authorization) => {
    const response = await ask(path, authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="admin"');
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining('scope admin') });
  });

  it.each([
    ['/v1/models', 403],
    ['/write', 403],
    ['/chat', 401],
  ])('does not open %s to operators', async (other, status) => {
    expect((await ask(other, 'Bearer operator')).status).toBe(status);
  });
});

describe('expressAuthentication', () => {
  it.each([
    ['/write', 'reader', 'blogs', 'blogs:write', 'blogs:read'],
    ['/write', 'chatter', 'blogs', 'blogs:write', 'chat'],
    ['/v1/models', 'writer', 'chat', 'chat', 'blogs:write'],
    ['/v1/models', 'reader', 'chat', 'chat', 'blogs:read'],
    ['/admin', 'writer', 'admin', 'admin', 'blogs:write'],
    ['/admin', 'reader', 'admin', 'admin', 'blogs:read'],
    ['/admin', 'chatter', 'admin', 'admin', 'chat'],
  ])('does not open %s to the token of a %s', async (path, token, realm, scope, has) => {
    const response = await ask(path, `Bearer ${token}`);
    expect(response.status).toBe(403);
    expect(response.headers.get('www-authenticate')).toBe(
      `Bearer realm="${realm}", error="insufficient_scope", scope="${scope}"`,
    );
    expect(await response.json()).toMatchObject({
      code: 'insufficient_scope',
      detail: `This address needs an access token with the scope ${scope}; the scope of this one is ${has}.`,
    });
  });

  it('refuses a header that was sent twice, whichever is right', async () => {
    const basic = `Authorization: Basic ${good}`;
    expect(await askRaw('/chat', basic)).toBe(200);
    expect(await askRaw('/chat', basic, basic)).toBe(401);
    expect(await askRaw('/chat', basic, 'authorization: Basic eDp5')).toBe(401);
    expect(await askRaw('/chat', 'AUTHORIZATION: Bearer writer', basic)).toBe(401);
    expect(await askRaw('/write', 'Authorization: Bearer writer', basic)).toBe(401);
    expect(await askRaw('/v1/models', basic, 'Authorization: Bearer chatter')).toBe(401);
    expect(await askRaw('/read', 'Authorization: Bearer reader', 'Authorization:')).toBe(401);
  });

  it('slows who fails again and again, at all doors together', async () => {
    const { ask: askLimited } = await start({ loginLimiter: new LoginLimiter({ delay: atOnce }) });
    const doors = ['/chat', '/write', '/v1/models', '/admin'];
    const guesses = Array.from({ length: 25 }, () => doors).flat();
    const guess = async (path: string) =>
      (await askLimited(path, path === '/chat' ? 'Basic eDp5' : 'Bearer wrong')).status;
    const statuses = await Promise.all(guesses.map(guess));
    expect(statuses.filter((status) => status === 401)).toHaveLength(30);
    expect(statuses.filter((status) => status === 429)).toHaveLength(70);

    const refused = await askLimited('/chat', 'Basic eDp5');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
    expect(refused.headers.get('www-authenticate')).toBeNull();
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    expect(await refused.json()).toMatchObject({ code: 'rate_limited', status: 429 });

    // From the same address: what is right passes, and what is missing is only missing.
    expect((await askLimited('/chat', `Basic ${good}`)).status).toBe(200);
    expect((await askLimited('/write', 'Bearer writer')).status).toBe(200);
    expect((await askLimited('/write', 'Bearer reader')).status).toBe(403);
    expect((await askLimited('/chat')).status).toBe(401);
    const elsewhere = { 'X-Forwarded-For': '192.0.2.7' };
    expect((await askLimited('/chat', 'Basic eDp5', elsewhere)).status).toBe(401);
  });

  it('lets right credentials in while guesses at their name wait, and knows them in any spelling', async () => {
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

  it('logs who was refused and from where, and a name only if it is a user’s', async () => {
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

  it('counts no requests without credentials, and none that are right', async () => {
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

  it('calls nobody unknown before the users are loaded, whatever the name and however often, and holds it against nobody', async () => {
    const { ask: askEarly, directory } = await start({
      directory: { loaded: false },
      loginLimiter: new LoginLimiter({ maxFailures: 2 }),
      earlyLimiter: new LoginLimiter({ maxFailures: 2, delay: atOnce }),
    });
    expect((await askEarly('/chat', `Basic ${good}`)).status).toBe(200);
    expect((await askEarly('/chat')).status).toBe(401);
    const answers = [
      await askEarly('/chat', 'Basic eDp5'),
      await askEarly('/chat', `Basic ${encode(`${name}:x`)}`),
      ...(await Promise.all(Array.from({ length: 40 }, () => askEarly('/chat', 'Basic eDp5')))),
    ];
    for (const response of answers) {
      expect(response.headers.get('Retry-After')).toBe('2');
      expect(await response.json()).toMatchObject({ status: 500, code: 'internal', retryable: true });
    }
    directory.loaded = true;
    expect((await askEarly('/chat', 'Basic eDp5')).status).toBe(401);
    expect((await askEarly('/chat', `Basic ${encode(`${name}:x`)}`)).status).toBe(401);
  });

  it('passes an error of the check on unchanged', async () => {
    const { ask: askFailing } = await start({
      directory: { findToken: () => Promise.reject(new Error('database on fire')) },
      loginLimiter: new LoginLimiter({ maxFailures: 0 }),
    });
    const response = await askFailing('/write', 'Bearer x');
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ code: 'internal' });
  });
});
describe('onCredentialsEnd', () => {
  /** A door whose requests stay until their credentials end; `end` takes those of everyone away. */
  async function startAttached() {
    let areGood = true;
    const listeners = new Set<() => void>();
    const attached = Promise.withResolvers<void>();
    const door = await start({
      directory: {
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
    return { ...door, load, attached: attached.promise, listeners, end: () => (areGood = false) };
  }

  it.each([
    ['a user', `Basic ${good}`, 'Basic realm="chat", charset="UTF-8"'],
    ['a token', 'Bearer chatter', 'Bearer realm="chat"'],
  ])('is called once %s is gone, and no sooner', async (_, authorization, challenge) => {
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
});
