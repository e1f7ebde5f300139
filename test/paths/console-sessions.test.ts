import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ConsoleSession } from '../../shared/contract.js';
import { quillgate } from '../support/command-line.js';
import { type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { readEvents } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { storeOf } from '../support/stores.js';
import { openWireTo } from '../support/wire.js';

const store = storeOf('postgres');
const admin = { name: 'ada', secret: 'canary-of-the-console-secret-31' };
let wire: Awaited<ReturnType<typeof openWireTo>>;
let deployment: Deployment;
let other: StartedApi;
beforeAll(async () => {
  wire = await openWireTo(store.databaseUrl);
  deployment = await startDeployment({
    store: { ...store, databaseUrl: wire.url },
    variables: { ADMIN_USERNAME: admin.name, ADMIN_PASSWORD: admin.secret },
  });
  other = await deployment.startApi();
  // The first query of a process waits for its connection: on a busy machine for longer than a request does.
  await vi.waitFor(async () => expect((await fetch(`${other.url}/blogs`)).status).toBe(200), patience);
});
afterAll(async () => {
  await deployment.stop();
  await wire.close();
});

const json = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
const post = (path: string, body: unknown, headers: Record<string, string> = {}, url = deployment.url) =>
  fetch(`${url}${path}`, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) });

async function signIn(who: object = admin) {
  const response = await post('/admin/session', who);
  expect(response.status).toBe(200);
  const [Cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
  return { session: (await response.json()) as ConsoleSession, headers: { Cookie } };
}

const ask = (headers: Record<string, string>, { path = '/admin/session', url = deployment.url } = {}) =>
  fetch(`${url}${path}`, { headers });

describe('a session of the console', () => {
  it('opens every API process at once, for pools, chats and posts', async () => {
    const { session, headers } = await signIn();
    const there = await ask(headers, { url: other.url });
    expect([there.status, await there.json()]).toEqual([200, session]);
    const [one, two] = await Promise.all([
      ask(headers, { path: '/admin/pools', url: other.url }),
      post('/admin/chat', { messages: [{ content: 'Hello' }] }, { ...headers, 'X-LLM': 'openai' }),
    ]);
    expect([one.status, two.status]).toEqual([200, 200]);
    const streamed = { ...headers, 'X-LLM': 'openai', Accept: 'text/event-stream' };
    const stream = await post('/admin/chat', { messages: [{ content: 'Hello' }] }, streamed);
    const names: (string | undefined)[] = [];
    for await (const { event } of readEvents(stream)) names.push(event);
    expect([names[0], names.at(-1)]).toEqual(['delta', 'done']);
    const created = await post('/admin/blogs', { content: 'Mine', status: 'draft' }, headers);
    expect(await created.json()).toMatchObject({ author: admin.name, status: 'draft' });
    const preview = await post('/admin/preview', { content: '*Hi* <script>x</script>' }, headers);
    expect(await preview.json()).toEqual({ html: '<p><em>Hi</em> </p>\n' });
  });

  it('ends everywhere, and its streams with it, when the secret is reset', async () => {
    const environment = { DATABASE_URL: deployment.stores.DATABASE_URL ?? '' };
    const add = ['users', 'add', 'grace', '--role', 'admin'];
    const { stdout: secret } = await quillgate(add, environment);
    const grace = { name: 'grace', secret: secret.trim() };
    await vi.waitFor(async () => expect((await post('/admin/session', grace)).status).toBe(200), {
      ...patience,
      interval: 300,
    });
    const { headers } = await signIn(grace);
    const events = readEvents(await ask(headers, { path: '/admin/events', url: other.url }));
    expect(await events.next()).toMatchObject({ value: { event: 'snapshot' } });
    const { stdout: fresh } = await quillgate(['users', 'reset', 'grace'], environment);
    let last: unknown;
    for await (const event of events) last = event;
    expect(last).toMatchObject({ event: 'error', data: { code: 'unauthorized' } });
    for (const url of [deployment.url, other.url])
      await vi.waitFor(async () => expect((await ask(headers, { url })).status).toBe(401), {
        ...patience,
        interval: 300,
      });
    expect((await post('/admin/session', grace)).status).toBe(401);
    await signIn({ name: 'grace', secret: fresh.trim() });
    const { stdout } = await quillgate(['audit', '--json'], environment);
    expect(stdout).toContain('users.reset');
    expect(stdout + deployment.logs()).not.toContain(fresh.trim());
  });

  it('goes on without the database; signing in and out waits for it', async () => {
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
    const leave = { method: 'DELETE', headers: { ...json, ...headers } };
    expect((await fetch(`${deployment.url}/admin/session`, leave)).status).toBe(503);
    await wire.mend();
    await vi.waitFor(async () => {
      expect((await fetch(`${deployment.url}/admin/session`, leave)).status).toBe(204);
    }, patience);
    await vi.waitFor(async () => expect((await ask(headers, { url: other.url })).status).toBe(401), {
      ...patience,
      interval: 300,
    });
    expect(deployment.logs()).not.toContain(admin.secret);
    expect(deployment.logs()).not.toContain(headers.Cookie.split('=')[1]);
  });
});
