import { type IncomingMessage, request } from 'node:http';
import { json as readJson } from 'node:stream/consumers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { migrateDatabase } from '../../db/database/migrate.js';
import type { Post, Problem } from '../../shared/contract.js';
import { quillgate } from '../support/command-line.js';
import {
  authorization,
  blogToken,
  type Deployment,
  password,
  startDeployment,
} from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { freshStore } from '../support/stores.js';

let deployment: Deployment;
/** Posts are for those alone who have a token; nobody in front of it is believed. */
let closed: Deployment;
beforeAll(async () => {
  [deployment, closed] = await Promise.all([
    startDeployment({ variables: { TRUSTED_PROXIES: 'loopback' } }),
    startDeployment({ workers: 0, variables: { BLOG_READS: 'token' } }),
  ]);
});
afterAll(() => Promise.all([deployment.stop(), closed.stop()]));

const operate = async (args: string[], on = deployment) => {
  const ran = await quillgate(args, { DATABASE_URL: on.stores.DATABASE_URL ?? '' });
  expect(ran).toMatchObject({ code: 0 });
  return ran;
};
const addUser = async (name: string): Promise<string> => {
  const { secret } = JSON.parse((await operate(['users', 'add', name, '--json'])).stdout);
  return basic(`${name}:${secret}`);
};
interface MadeToken {
  id: string;
  token: string;
  expiresAt: string;
}
const createToken = async (args: string[] = [], on = deployment): Promise<MadeToken> =>
  JSON.parse((await operate(['tokens', 'create', '--json', ...args], on)).stdout);

const basic = (credentials: string): string => `Basic ${Buffer.from(credentials).toString('base64')}`;
const bearer = (token: string): string => `Bearer ${token}`;
const bearing = (token: string) => ({ headers: { Authorization: bearer(token) } });
const chatAs = async (Authorization: string) =>
  (await deployment.chat({ headers: { Authorization } })).status;
const writeAs = async (token: string) =>
  (await deployment.blog('/blogs', { json: { content: 'x' }, ...bearing(token) })).status;

const keptChat = async (Authorization: string, id: unknown) =>
  (await fetch(`${deployment.url}/chat/${id}`, { headers: { Authorization } })).status;

describe('a name that is given again', () => {
  const keyed = { 'Idempotency-Key': 'the-same-key' };

  it('is another user, who sees nothing of the earlier one', async () => {
    const earlier = await addUser('again');
    await vi.waitFor(async () => expect(await chatAs(earlier)).toBe(200), patience);
    const kept = await deployment.chat({ headers: { Authorization: earlier, ...keyed } });
    expect(kept.status).toBe(200);
    const id = kept.headers.get('content-location')?.split('/').pop();
    expect(await keptChat(earlier, id)).toBe(200);
    const { token } = await createToken(['--owner', 'again']);
    const write = async (bearing: string, content: string) => {
      const headers = { Authorization: bearer(bearing), ...keyed };
      return (await (await deployment.blog('/blogs', { json: { content }, headers })).json()) as Post;
    };
    const post = await write(token, 'of the earlier one');
    expect(await write(token, 'of the earlier one')).toEqual(post);

    await operate(['users', 'remove', 'again']);
    const later = await addUser('again');
    await vi.waitFor(async () => expect(await chatAs(later)).toBe(200), patience);
    expect(await keptChat(later, id)).toBe(404);
    const own = await deployment.chat({ headers: { Authorization: later, ...keyed } });
    expect(own.status).toBe(200);
    expect(own.headers.get('idempotency-replayed')).toBeNull();
    const { token: another } = await createToken(['--owner', 'again']);
    const ownPost = await write(another, 'of the later one');
    expect(ownPost).toMatchObject({ content: 'of the later one' });
    expect(await write(another, 'of the later one')).toEqual(ownPost);
  });
});

let addresses = 0;
/** An address that no other test fails from. */
const newAddress = (): string => `203.0.113.${++addresses}`;

interface Attempt {
  method?: string;
  path: string;
  /** Each is sent as a header of its own. */
  credentials?: string[];
  /** Where the proxy says that it comes from. */
  from?: string;
  on?: Deployment;
}

/** Sends a request whose body, if one is read at all, is a good one. */
async function attempt({ method = 'POST', path, credentials, from, on = deployment }: Attempt) {
  const { hostname, port } = new URL(on.url);
  const headers = {
    'Content-Type': 'application/json',
    'X-LLM': 'openai',
    ...(credentials && { Authorization: credentials }),
    ...(from && { 'X-Forwarded-For': from }),
  };
  const sent = request({ hostname, port, path, method, headers });
  sent.end(method === 'POST' ? '{"content":"x","messages":[{"content":"x"}]}' : undefined);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).once('error', reject);
  });
  const { statusCode: status = 0, headers: received } = answer;
  return { status, headers: received, problem: (await readJson(answer)) as Problem };
}

const badOnes = {
  none: undefined,
  'an empty header': [''],
  'a scheme alone': ['Basic'],
  'another scheme alone': ['Bearer'],
  'something that is not base64': ['Basic !!!'],
  'a name without a secret': [basic('tester')],
  'a wrong secret': [basic('tester:secret-of-the-teste')],
  'a wrong name': [basic(`Tester:${password}`)],
  'a property of every object': [basic('__proto__:x')],
  'bytes that are not UTF-8': ['Basic /////zr/'],
  '10 KB': [`Basic ${'A'.repeat(10_240)}`],
  'a token of 10 KB': [bearer('A'.repeat(10_240))],
  'a token that was never made': [bearer(`qg_${'A'.repeat(38)}`)],
  'a token of another case': [bearer(blogToken.toUpperCase())],
  'two tokens': [bearer(`${blogToken} ${blogToken}`)],
};
const interfaces = [
  {
    name: 'chat',
    path: '/chat',
    challenge: 'Basic realm="chat", charset="UTF-8"',
    bad: {
      ...badOnes,
      'the token of the blog': [bearer(blogToken)],
      'the right ones twice': [authorization, authorization],
    },
  },
  {
    name: 'the blog',
    path: '/blogs',
    challenge: 'Bearer realm="blogs"',
    bad: {
      ...badOnes,
      'a user of chat': [authorization],
      'the right ones twice': [bearer(blogToken), bearer(blogToken)],
    },
  },
];

describe.each(interfaces)('bad credentials for $name', ({ path, challenge, bad }) => {
  it('are answered alike, whatever is wrong with them', async () => {
    const from = newAddress();
    const bodies = [];
    for (const [what, credentials] of Object.entries(bad)) {
      const { status, headers, problem } = await attempt({ path, from, ...(credentials && { credentials }) });
      expect(status, what).toBe(401);
      expect(headers['content-type'], what).toMatch(/^application\/problem\+json/);
      expect(headers['www-authenticate'], what).toContain(challenge);
      expect(problem.requestId, what).toBe(headers['x-request-id']);
      bodies.push({ ...problem, requestId: '' });
    }
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(bodies[0]).toMatchObject({ status: 401, code: 'unauthorized' });
  });
});

describe('credentials that nobody needs', () => {
  it('must be right all the same when posts are read with them', async () => {
    const credentials = [bearer('wrong')];
    const read = { method: 'GET', path: '/blogs', from: newAddress() };
    expect((await attempt({ ...read, credentials })).status).toBe(401);
    expect((await attempt({ ...read, credentials: [authorization] })).status).toBe(401);
    expect((await attempt(read)).status).toBe(200);
  });
});

describe('a hundred failed logins within a minute', () => {
  /** How often each status was answered, and what came with the last answer. */
  async function fail(times: number, login: Attempt) {
    const answers = await Promise.all(Array.from({ length: times }, () => attempt(login)));
    const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    const refused = answers.filter(({ status }) => status === 429);
    return { unauthorized: count(401), limited: count(429), refused };
  }
  const wrong = [basic('tester:wrong')];

  it('from one address are refused with 429, and good ones from there or elsewhere are not', async () => {
    const [from, elsewhere] = [newAddress(), newAddress()];
    const chat = await fail(50, { path: '/chat', credentials: wrong, from });
    expect(chat).toMatchObject({ unauthorized: 30, limited: 20 });
    const blog = await fail(50, { path: '/blogs', credentials: [bearer('wrong')], from });
    expect(blog).toMatchObject({ unauthorized: 0, limited: 50 });
    for (const { headers, problem } of [...chat.refused, ...blog.refused]) {
      expect(problem).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    for (const there of [from, elsewhere]) {
      const good = [authorization];
      expect((await attempt({ path: '/chat', credentials: good, from: there })).status).toBe(200);
      const token = [bearer(blogToken)];
      expect((await attempt({ path: '/blogs', credentials: token, from: there })).status).toBe(201);
    }
    expect((await attempt({ path: '/chat', credentials: wrong, from: elsewhere })).status).toBe(401);
  });

  it('count as one address, whatever is forwarded by somebody who is not trusted', async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, () =>
        attempt({ path: '/chat', credentials: wrong, from: newAddress(), on: closed }),
      ),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(70);
    expect((await closed.blog('/blogs')).status).toBe(200);
  });
});

describe('a user of the command line', () => {
  it('can chat at once, and not any more when removed, with all tokens', async () => {
    const [zoe, yan] = [await addUser('Zoë'), await addUser('Yan')];
    expect(await chatAs(zoe)).toBe(200);
    const { token } = await createToken(['--owner', 'Zoë']);
    expect(await writeAs(token)).toBe(201);
    await operate(['users', 'remove', 'Zoë']);
    expect(await chatAs(zoe)).toBe(401);
    expect(await writeAs(token)).toBe(401);
    expect(await chatAs(yan)).toBe(200);
    expect(await chatAs(authorization)).toBe(200);
  });
});

describe('a token of the command line', () => {
  it('writes posts in the name of its owner at once, and not any more when revoked', async () => {
    const { id, token } = await createToken(['--owner', 'Ünal']);
    const created = await deployment.blog('/blogs', { json: { content: 'x' }, ...bearing(token) });
    expect(created.status).toBe(201);
    expect(((await created.json()) as Post).author).toBe('Ünal');
    await operate(['tokens', 'revoke', id]);
    expect(await writeAs(token)).toBe(401);
  });

  it('ends when its time has come', async () => {
    const { id, token, expiresAt } = await createToken(['--expires', '12h']);
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(11.9 * 3_600_000);
    expect(await writeAs(token)).toBe(201);
    const operator = new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
    await operator.connect();
    await operator.query('UPDATE tokens SET expires_at = now() WHERE id = $1', [id]);
    await operator.end();
    expect(await writeAs(token)).toBe(401);
  });

  it('is known to have been used', async () => {
    const { id, token } = await createToken();
    const lastUse = async (): Promise<string | null> => {
      const tokens = JSON.parse((await operate(['tokens', 'list', '--json'])).stdout) as {
        id: string;
        lastUsedAt: string | null;
      }[];
      return tokens.find((listed) => listed.id === id)?.lastUsedAt ?? null;
    };
    expect(await lastUse()).toBeNull();
    const usedAt = Date.now();
    expect(await writeAs(token)).toBe(201);
    const seen = await vi.waitUntil(lastUse, patience);
    expect(Math.abs(Date.parse(seen) - usedAt)).toBeLessThan(patience.timeout);
  });

  it('does what its scopes allow and nothing else', async () => {
    const scoped = async (scope: string) => (await createToken(['--scope', scope], closed)).token;
    const made = ['blogs:read', 'blogs:write', 'chat'].map(scoped);
    const [read = '', write = '', chat = ''] = await Promise.all(made);
    const statuses = async (token: string) => {
      const answers = [
        await closed.blog('/blogs', bearing(token)),
        await closed.blog('/feed.json', bearing(token)),
        await closed.blog('/blogs', { json: { content: 'x' }, ...bearing(token) }),
      ];
      return answers.map(({ status }) => status);
    };
    expect(await statuses(read)).toEqual([200, 200, 403]);
    expect(await statuses(write)).toEqual([200, 200, 201]);
    expect(await statuses(chat)).toEqual([403, 403, 403]);
    const refused = await closed.blog('/blogs', { json: {}, ...bearing(read) });
    expect(refused.headers.get('www-authenticate')).toBe(
      'Bearer realm="blogs", error="insufficient_scope", scope="blogs:write"',
    );
    expect(await refused.json()).toMatchObject({ code: 'insufficient_scope' });
  });
});

describe('BLOG_READS=token', () => {
  it('closes posts and feeds to those without a token, and the description says so', async () => {
    const { id } = (await (await closed.blog('/blogs', { json: { content: 'x' } })).json()) as Post;
    for (const path of ['/blogs', `/blogs/${id}`, '/feed.json', '/feed.xml']) {
      const refused = await attempt({ method: 'GET', path, on: closed });
      expect(refused.status, path).toBe(401);
      expect(refused.headers['www-authenticate'], path).toBe('Bearer realm="blogs"');
      const read = await closed.blog(path);
      expect(read.status, path).toBe(200);
      expect(read.headers.get('cache-control'), path).toMatch(/private/);
    }
    const securityOf = async ({ url }: Deployment) => {
      const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, { security: object[] }>>;
      };
      return document.paths['/blogs']?.get?.security;
    };
    expect(await securityOf(closed)).toEqual([{ bearer: [] }]);
    expect(await securityOf(deployment)).toEqual([{ bearer: [] }, {}]);
  });
});

describe('a server', () => {
  const fresh = async (): Promise<Record<string, string>> => {
    const url = deployment.stores.DATABASE_URL ?? '';
    const stores = await freshStore({ kind: 'postgres', url, databaseUrl: url });
    await migrateDatabase(stores.DATABASE_URL ?? '');
    return { ...stores, HOST: '127.0.0.1', PORT: '0' };
  };

  it('refuses to start when nobody could use it, and says what to do', async () => {
    const environment = await fresh();
    const { code, stderr } = await quillgate(['api'], environment);
    expect(code).toBe(1);
    for (const way of ['CHAT_USERNAME', 'CHAT_PASSWORD', 'BLOG_TOKEN', 'quillgate users add']) {
      expect(stderr).toContain(way);
    }
    const made = JSON.parse((await quillgate(['tokens', 'create', '--json'], environment)).stdout);
    await quillgate(['tokens', 'revoke', made.id], environment);
    expect(await quillgate(['api'], environment)).toMatchObject({ code: 1, stderr });
  });

  it.each([
    [{ CHAT_USERNAME: 'x', CHAT_PASSWORD: 'canary-of-15-ch' }, 'CHAT_PASSWORD'],
    [{ BLOG_TOKEN: 'canary-of-31-characters-xxxxxxx' }, 'BLOG_TOKEN'],
  ])('refuses to start with %o, and names %s without its value', async (variables, name) => {
    const environment = { DATABASE_URL: 'postgres://u:p@127.0.0.1:1/x', ...variables };
    const { code, stdout, stderr } = await quillgate(['api'], environment);
    expect(code).toBe(1);
    expect(stderr).toContain(name);
    expect(stdout + stderr).not.toContain('canary');
  });
});
