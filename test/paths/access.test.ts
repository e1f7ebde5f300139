import { afterAll, describe, expect, it, vi } from 'vitest';
import { migrateDatabase } from '../../db/database/migrate.js';
import type { ConsoleSession, Post } from '../../shared/contracts/contract.js';
import { quillgate } from '../support/command-line.js';
import { authorization, chatToken, startDeployment } from '../support/deployment.js';
import { readEvents } from '../support/event-streams.js';
import { bearer, completionOf } from '../support/openai-requests.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';
import { freshStore, storeOf } from '../support/stores.js';
import { openWireTo } from '../support/wire.js';

const store = storeOf('postgres');
const admin = { name: 'ada', secret: 'canary-of-the-console-secret-31' };
const wire = await openWireTo(store.databaseUrl);
afterAll(() => wire.close());
const deployment = await startDeployment({
  store: { ...store, databaseUrl: wire.url },
  variables: { ...profiles.plain, ADMIN_USERNAME: admin.name, ADMIN_PASSWORD: admin.secret },
});
afterAll(deployment.stop);
const other = await deployment.startApi();
/** Posts are for tokens alone, and what a client says of its address does not count. */
const closed = await deployment.startApi({ BLOG_READS: 'token', TRUSTED_PROXIES: '' });
// The first query of a process waits for its connection: on a busy machine for longer than a request does.
await vi.waitFor(async () => expect((await fetch(`${other.url}/blogs`)).status).toBe(200), patience);

/** Asks rarely: thirty failures a minute slow all clients of an address. */
const eventually = (check: () => Promise<void>) => vi.waitFor(check, { ...patience, interval: 300 });
const environment = () => ({ DATABASE_URL: deployment.stores.DATABASE_URL ?? '' });
const operate = async (...args: string[]): Promise<string> => {
  const { code, stdout } = await quillgate(args, environment());
  expect([args, code]).toEqual([args, 0]);
  return stdout.trim();
};
const addUser = async (name: string): Promise<string> => {
  const secret = await operate('users', 'add', name);
  return `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`;
};
const createToken = async (...args: string[]): Promise<{ id: string; token: string }> =>
  JSON.parse(await operate('tokens', 'create', '--json', ...args));

const chatAs = async (Authorization: string) =>
  (await deployment.chat({ headers: { Authorization } })).status;
const statusOf = async (
  Authorization: string,
  { path, url = deployment.url }: { path: string; url?: string },
) => (await fetch(`${url}${path}`, { headers: { Authorization } })).status;
const write = (token: string, content: string, headers = {}) =>
  deployment.blog('/blogs', { json: { content }, headers: { ...headers, Authorization: bearer(token) } });

describe('a user and a token of the command line', () => {
  const keyed = { 'Idempotency-Key': 'the-same-key' };
  const keptChat = (Authorization: string, id: unknown) => statusOf(Authorization, { path: `/chat/${id}` });
  const post = async (token: string, content: string) => {
    const response = await write(token, content, keyed);
    return { httpStatus: response.status, ...((await response.json()) as Post) };
  };

  it('are removed, and the name given again → the first are refused, and the second see nothing of them', async () => {
    const first = await addUser('Zoë');
    await eventually(async () => expect(await chatAs(first)).toBe(200));
    const chat = await deployment.chat({ headers: { Authorization: first, ...keyed } });
    expect(chat.status).toBe(200);
    const id = chat.headers.get('content-location')?.split('/').pop();
    expect(await keptChat(first, id)).toBe(200);
    const { token } = await createToken('--owner', 'Zoë');
    const own = await post(token, 'of the first one');
    expect(own).toMatchObject({ httpStatus: 201, author: 'Zoë' });

    await operate('users', 'remove', 'Zoë');
    await eventually(async () => expect(await chatAs(first)).toBe(401));
    expect((await write(token, 'x')).status).toBe(401);
    expect(await chatAs(authorization)).toBe(200);

    const second = await addUser('Zoë');
    await eventually(async () => expect(await chatAs(second)).toBe(200));
    expect(await keptChat(second, id)).toBe(404);
    const again = await deployment.chat({ headers: { Authorization: second, ...keyed } });
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, null]);
    const { token: another } = await createToken('--owner', 'Zoë');
    const others = await post(another, 'of the second one');
    expect(others).toMatchObject({ httpStatus: 201, content: 'of the second one' });
    expect((await post(another, 'of the second one')).id).toBe(others.id);
    expect(others.id).not.toBe(own.id);
  });

  it('are a token that is revoked → it chats and writes at every API process, and then at none', async () => {
    const { id, token } = await createToken('--scope', 'chat,blogs:write', '--owner', 'Ünal');
    const models = (url: string) => statusOf(bearer(token), { url, path: '/v1/models' });
    for (const { url } of [deployment, other]) {
      await eventually(async () => expect(await models(url)).toBe(200));
      const asked = { model: 'openai/sim-echo' };
      const reply = await completionOf({ url }, asked, { Authorization: bearer(token) });
      expect(reply).toMatchObject({ status: 200, finish: 'stop' });
    }
    expect(await (await write(token, 'x')).json()).toMatchObject({ author: 'Ünal' });
    await operate('tokens', 'revoke', id);
    await eventually(async () => expect((await write(token, 'x')).status).toBe(401));
    for (const { url } of [deployment, other])
      await eventually(async () => expect(await models(url)).toBe(401));
  });

  it('are those of the environment → each opens the models, the token of chat and the credentials', async () => {
    for (const Authorization of [bearer(chatToken), authorization])
      expect(await statusOf(Authorization, { path: '/v1/models' })).toBe(200);
  });
});

describe('BLOG_READS=token', () => {
  it('→ posts and feeds are closed to those without a token, and the description says so', async () => {
    const created = await closed.blog('/blogs', { json: { content: 'x' } });
    const { id } = (await created.json()) as Post;
    for (const path of ['/blogs', `/blogs/${id}`, '/feed.json', '/feed.xml']) {
      const refused = await fetch(`${closed.url}${path}`);
      const challenge = refused.headers.get('www-authenticate');
      expect([path, refused.status, challenge]).toEqual([path, 401, 'Bearer realm="blogs"']);
      const read = await closed.blog(path);
      expect([path, read.status]).toEqual([path, 200]);
      expect(read.headers.get('cache-control'), path).toMatch(/private/);
    }
    const securityOf = async ({ url }: { url: string }) => {
      const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, { security: object[] }>>;
      };
      return document.paths['/blogs']?.get?.security;
    };
    expect(await securityOf(closed)).toEqual([{ bearer: [] }]);
    expect(await securityOf(deployment)).toEqual([{ bearer: [] }, {}]);
  });
});

describe('32 failed logins with other forwarded addresses from a client that is not trusted', () => {
  it('→ count as of one address, and its right credentials are accepted', async () => {
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, n) => {
        const headers = { Authorization: bearer('wrong'), 'X-Forwarded-For': `203.0.113.${n}` };
        return fetch(`${closed.url}/blogs`, { headers });
      }),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(2);
    expect((await closed.blog('/blogs')).status).toBe(200);
  });
});

describe('an API process that nobody could use', () => {
  it('→ does not start, also where all tokens are revoked, and says what to do', async () => {
    const fresh = await freshStore(store);
    await migrateDatabase(fresh.DATABASE_URL ?? '');
    const variables = { ...fresh, HOST: '127.0.0.1', PORT: '0' };
    const made = JSON.parse(
      (await quillgate(['tokens', 'create', '--owner', 'ada', '--json'], variables)).stdout,
    );
    await quillgate(['tokens', 'revoke', made.id], variables);
    const { code, stderr } = await quillgate(['api'], variables);
    expect(code).toBe(1);
    const ways = ['CHAT_USERNAME', 'CHAT_PASSWORD', 'ADMIN_USERNAME', 'BLOG_TOKEN', 'CHAT_TOKEN'];
    for (const way of [...ways, 'quillgate users add']) expect(stderr).toContain(way);
  });
});

describe('a session of the console', () => {
  const json = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const init = { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) };
    return fetch(`${deployment.url}${path}`, init);
  };
  const signIn = async (who: object = admin) => {
    const response = await post('/admin/session', who);
    expect(response.status).toBe(200);
    const [Cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
    return { session: (await response.json()) as ConsoleSession, headers: { Cookie } };
  };
  const ask = (headers: Record<string, string>, { path = '/admin/session', url = deployment.url } = {}) =>
    fetch(`${url}${path}`, { headers });

  it('was opened at one API process → it opens every one, for pools, chats and posts', async () => {
    const { session, headers } = await signIn();
    const there = await ask(headers, { url: other.url });
    expect([there.status, await there.json()]).toEqual([200, session]);
    expect((await ask(headers, { path: '/admin/pools', url: other.url })).status).toBe(200);
    const chat = { messages: [{ content: 'Hello' }] };
    const provider = { ...headers, 'X-LLM': 'openai' };
    expect((await post('/admin/chat', chat, provider)).status).toBe(200);
    const stream = await post('/admin/chat', chat, { ...provider, Accept: 'text/event-stream' });
    const names: (string | undefined)[] = [];
    for await (const { event } of readEvents(stream)) names.push(event);
    expect([names[0], names.at(-1)]).toEqual(['delta', 'done']);
    const created = await post('/admin/blogs', { content: 'Mine', status: 'draft' }, headers);
    expect(await created.json()).toMatchObject({ author: admin.name, status: 'draft' });
    const preview = await post('/admin/preview', { content: '*Hi* <script>x</script>' }, headers);
    expect(await preview.json()).toEqual({ html: '<p><em>Hi</em> </p>\n' });
  });

  it('is of a user whose secret is reset → it ends everywhere, and its streams with it', async () => {
    const secret = await operate('users', 'add', 'grace', '--role', 'admin');
    const grace = { name: 'grace', secret };
    await eventually(async () => expect((await post('/admin/session', grace)).status).toBe(200));
    const { headers } = await signIn(grace);
    const events = readEvents(await ask(headers, { path: '/admin/events', url: other.url }));
    expect(await events.next()).toMatchObject({ value: { event: 'snapshot' } });
    const fresh = await operate('users', 'reset', 'grace');
    let last: unknown;
    for await (const event of events) last = event;
    expect(last).toMatchObject({ event: 'error', data: { code: 'unauthorized' } });
    for (const url of [deployment.url, other.url])
      await eventually(async () => expect((await ask(headers, { url })).status).toBe(401));
    expect((await post('/admin/session', grace)).status).toBe(401);
    await signIn({ name: 'grace', secret: fresh });
    const audit = await operate('audit', '--json');
    expect(audit).toContain('users.reset');
    expect(audit + deployment.logs()).not.toContain(fresh);
  });

  it('is used while the database is away → it goes on; signing in and out waits', async () => {
    const { headers } = await signIn();
    // Known there from now on.
    expect((await ask(headers, { url: other.url })).status).toBe(200);
    await wire.cut();
    for (const url of [deployment.url, other.url])
      for (const path of ['/admin/session', '/admin/pools'])
        expect((await ask(headers, { path, url })).status, path).toBe(200);
    const unavailable = { code: 'database_unavailable', status: 503 };
    expect(await (await post('/admin/session', admin)).json()).toMatchObject(unavailable);
    expect(await (await post('/admin/blogs', { content: 'x' }, headers)).json()).toMatchObject(unavailable);
    for (const path of ['/admin/users', '/admin/tokens', '/admin/audit'])
      expect(await (await ask(headers, { path })).json()).toMatchObject(unavailable);
    const leave = { method: 'DELETE', headers: { ...json, ...headers } };
    const signOut = async () => (await fetch(`${deployment.url}/admin/session`, leave)).status;
    expect(await signOut()).toBe(503);
    await wire.mend();
    await eventually(async () => expect(await signOut()).toBe(204));
    await eventually(async () => expect((await ask(headers, { url: other.url })).status).toBe(401));
    for (const secret of [admin.secret, headers.Cookie.split('=')[1]])
      expect(deployment.logs()).not.toContain(secret);
  });
});
