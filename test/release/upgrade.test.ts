import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Chat } from '../../shared/contract.js';
import type { Fleet } from '../../shared/fleet-contract.js';
import { buildOlderRelease } from '../compatibility/older-release.js';
import { createToken, type TestToken } from '../support/accounts.js';
import { quillgate } from '../support/command-line.js';
import { authorization, type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { askWithTools, callsIn, weatherTool } from '../support/tool-completions.js';

// The programs of this checkout beside those of the release before it, on the schema of this one. OpenAI has an older
// worker alone, Anthropic a newer one alone, and Vertex AI one of each.

const older = await buildOlderRelease();

const mixtures = [
  { asked: 'newer', answering: 'older', provider: 'openai' },
  { asked: 'older', answering: 'newer', provider: 'anthropic' },
] as const;

let deployment: Deployment;
let operator: TestToken | undefined;
let apis: Record<'older' | 'newer', Pick<StartedApi, 'url' | 'chat' | 'blog'>>;

async function start(release: string): Promise<void> {
  deployment = await startDeployment({ workers: 0 });
  const [olderApi] = await Promise.all([
    deployment.startApi({}, release),
    deployment.startWorker({ WORKER_PROVIDERS: 'openai,vertexai' }, release),
    deployment.startWorker({ WORKER_PROVIDERS: 'anthropic,vertexai' }),
  ]);
  apis = { older: olderApi, newer: deployment };
}

const eventually = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, patience);
const callOf = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const otherThan = (release: keyof typeof apis) => apis[release === 'older' ? 'newer' : 'older'];

async function keptChat({ url }: { url: string }, id: unknown, method = 'GET'): Promise<Response> {
  return fetch(`${url}/chat/${id}`, { method, headers: { Authorization: authorization } });
}

async function untilStatus(api: { url: string }, id: unknown, status: Chat['status']): Promise<Chat> {
  return eventually(async () => {
    const chat = (await (await keptChat(api, id)).json()) as Chat;
    expect(chat.status).toBe(status);
    return chat;
  });
}

/** Asks until the API itself refuses; before it has heard that the pool would, a request waits in vain. */
async function untilRefused(api: Pick<StartedApi, 'chat'>, provider: string): Promise<void> {
  await eventually(async () => {
    const asked = { provider, model: 'sim-retry-after-3600', headers: { Prefer: 'wait=1' } };
    expect((await api.chat(asked)).body.code).toBe('provider_rate_limited');
  });
}

/** The fleet as the newer API shows it to operators. */
async function readFleet(): Promise<Fleet> {
  operator ??= await createToken(deployment);
  const response = await operator.ask();
  expect(response.status).toBe(200);
  return (await response.json()) as Fleet;
}

describe('two releases at once', () => {
  if (older.missing !== undefined) return it.skip(`(did not run: ${older.missing})`);
  beforeAll(() => start(older.launcher));
  afterAll(() => deployment?.stop());

  describe.each(mixtures)('$asked API, $answering worker', ({ asked, provider }) => {
    it('chat, and tell how it ended', async () => {
      const { chat } = apis[asked];
      const replies = await Promise.all(
        ['sim-echo', 'sim-length', 'sim-blocked', 'sim-status-400'].map((model) => chat({ provider, model })),
      );
      expect(replies.map(({ status, body }) => [status, body.code])).toEqual([
        [200, undefined],
        [200, undefined],
        [500, 'content_blocked'],
        [500, 'provider_rejected'],
      ]);
      expect(replies[1]?.headers.get('x-llm-finish-reason')).toBe('length');
    });

    it('keep chats that are read, joined and replayed in either API', async () => {
      const { chat } = apis[asked];
      const { status, body } = await chat({ provider, headers: { Prefer: 'respond-async' } });
      expect(status).toBe(202);
      const here = await untilStatus(apis[asked], body.id, 'completed');
      expect(await untilStatus(otherThan(asked), body.id, 'completed')).toEqual(here);

      const model = `sim-latency-300@joined-${provider}`;
      const keyed = { provider, model, headers: { 'Idempotency-Key': `upgrade-${provider}` } };
      const first = chat(keyed);
      await callOf(model);
      const joined = await Promise.all([first, otherThan(asked).chat(keyed)]);
      const replayed = await otherThan(asked).chat(keyed);
      expect([...joined, replayed].map((reply) => reply.status)).toEqual([200, 200, 200]);
      expect(new Set([...joined, replayed].map((reply) => reply.body.response)).size).toBe(1);
      expect(replayed.headers.get('idempotency-replayed')).toBe('true');
      expect(deployment.simulator.calls.list({ model })).toHaveLength(1);
    });

    it('stream what the other asked for', async () => {
      const keyed = {
        provider,
        model: 'sim-stream-20-5',
        headers: { 'Idempotency-Key': `stream-${provider}` },
      };
      const inOnePiece = apis.older.chat(keyed);
      const { text, end } = await readStream(await openStream({ url: apis.newer.url, ...keyed }));
      expect(end).toMatchObject({ event: 'done', data: { response: text } });
      expect((await inOnePiece).body.response ?? text).toBe(text);
    });

    it('cancel what runs', async () => {
      const left = `sim-hang@left-${provider}`;
      const going = new AbortController();
      const leaving = apis[asked].chat({ provider, model: left, signal: going.signal });
      const call = await callOf(left);
      going.abort();
      await leaving.catch(() => undefined);
      await call.closed;

      const taken = `sim-hang@taken-back-${provider}`;
      const { body } = await apis[asked].chat({
        provider,
        model: taken,
        headers: { Prefer: 'respond-async' },
      });
      const running = await callOf(taken);
      expect((await keptChat(otherThan(asked), body.id, 'DELETE')).status).toBe(204);
      await running.closed;
      for (const api of Object.values(apis)) await untilStatus(api, body.id, 'cancelled');
    });

    it('hold back for a 429', async () => {
      const reply = await apis[asked].chat({ provider, model: 'sim-retry-after-3600' });
      expect(reply.body.code).toBe('provider_rate_limited');
      await untilRefused(apis[asked], provider);
    });
  });

  it('leave a chat with tools to the newer worker, which alone can answer it', async () => {
    const asked = Array.from({ length: 8 }, () =>
      askWithTools(apis.newer, { model: 'vertexai/sim-tools', tools: [weatherTool], stream: true }),
    );
    for (const reply of await Promise.all(asked)) {
      expect(reply).toMatchObject({ status: 200, finish: 'tool_calls' });
      expect(callsIn(reply).map(([name]) => name)).toEqual(['weather']);
    }
    const alone = 'sim-tools@older-alone';
    const body = { model: `openai/${alone}`, tools: [weatherTool] };
    const reply = await askWithTools(apis.newer, body, { headers: { Prefer: 'wait=2' } });
    expect(reply.error?.code).toBe('timeout');
    expect(deployment.simulator.calls.list({ model: alone })).toEqual([]);
  });

  it('stream text to an older API beside calls of tools, and tell it of a chat that it cannot read', async () => {
    const headers = { 'Idempotency-Key': 'upgrade-tools' };
    const model = 'anthropic/sim-tool-slow-20-50';
    const calling = askWithTools(apis.newer, { model, tools: [weatherTool], stream: true }, { headers });
    const text = await readStream(
      await openStream({ url: apis.older.url, provider: 'anthropic', model: 'sim-stream-40-20' }),
    );
    expect(text.end).toMatchObject({ event: 'done', data: { response: text.text } });
    expect(text.deltas.length).toBeGreaterThan(2);
    const called = await calling;
    expect(called.finish).toBe('tool_calls');
    const id = called.headers.get('content-location')?.split('/').at(-1);
    const unread = await keptChat(apis.older, id);
    expect([unread.status, await unread.json()]).toEqual([
      500,
      expect.objectContaining({ code: 'internal', retryable: true }),
    ]);
    expect(await (await keptChat(apis.newer, id)).json()).toMatchObject({
      completion: { choices: [{ message: { tool_calls: called.calls } }] },
    });
  });

  it('tell each other, worker to worker, that a provider limits them', async () => {
    await apis.newer.chat({ provider: 'vertexai', model: 'sim-retry-after-3600' });
    // An API refuses once every pool holds back.
    await Promise.all(Object.values(apis).map((api) => untilRefused(api, 'vertexai')));
  });

  it('show operators the workers of both, each with what it tells', async () => {
    await eventually(async () => {
      const { providers } = await readFleet();
      const seen = Object.fromEntries(providers.map((each) => [each.provider, [each.state, each.kind]]));
      expect(seen).toMatchObject({
        openai: ['serving', 'real'],
        anthropic: ['serving', 'real'],
        vertexai: ['serving', 'real'],
      });
      expect(providers[3]?.workers).toHaveLength(2);
    });
    expect(await quillgate(['status', '--providers', 'openai,anthropic'], deployment.stores)).toMatchObject({
      code: 0,
    });
  });

  it('serve the blog from the newer schema, also after a migration that is still to come', async () => {
    const client = new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
    await client.connect();
    // One of each kind that the rule for migrations lets through.
    await client.query(`
      create table comments (id uuid primary key, post_id uuid not null references posts (id) on delete cascade);
      alter table posts add column summary text;
      alter table users add column locale text not null default 'en';
      insert into quillgate_migrations (created_at, hash) values (4102444800000, 'newer')`);
    await client.end();
    for (const [release, { url, blog }] of Object.entries(apis)) {
      const created = await blog('/blogs', { json: { title: release, content: 'A durable queue' } });
      const { id } = (await created.json()) as { id: string };
      const path = `/blogs/${id}`;
      const changed = await blog(path, { method: 'PATCH', json: { tags: [release] } });
      expect(await changed.json()).toMatchObject({ title: release, tags: [release], version: 2 });
      const found = await (await blog(`/blogs?q=queues&tag=${release}`)).json();
      expect(found).toMatchObject([{ id, content: 'A durable queue' }]);
      expect(await (await blog('/feed.json')).text()).toContain('A durable queue');
      expect((await blog(path, { method: 'PUT', json: { content: 'Another' } })).status).toBe(200);
      expect((await blog(path, { method: 'DELETE' })).status).toBe(204);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    }
  });
});
