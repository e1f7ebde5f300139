import { request } from 'node:http';
import { text as readAll } from 'node:stream/consumers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Post, Problem } from '../../shared/contract.js';
import { isBlank } from '../../shared/conversation.js';
import { conversationShapes } from '../support/conversations.js';
import { blogToken, type Deployment, startDeployment } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { patience } from '../support/patience.js';

const poolSize = 4;

let deployment: Deployment;
/** Works on the same database, past the server that is tested. */
let operator: pg.Client;
beforeAll(async () => {
  deployment = await startDeployment({ workers: 0, variables: { DATABASE_POOL_SIZE: String(poolSize) } });
  operator = new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
  await operator.connect();
});
afterAll(async () => {
  await operator.end();
  await deployment.stop();
});

const write = (json: object, headers: Record<string, string> = {}) =>
  deployment.blog('/blogs', { json, headers });
const create = async (json: object): Promise<Post> => (await write(json)).json() as Promise<Post>;

describe('connections to the database that are killed while posts are written', () => {
  /** Resolves when they have ended. */
  const kill = () =>
    operator.query(
      `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  const stored = async (tag: string) => {
    const { rows } = await operator.query('SELECT content FROM posts WHERE tags @> ARRAY[$1]', [tag]);
    return rows.map(({ content }) => content as string).sort();
  };
  const contents = Array.from({ length: 400 }, (_, place) => `Post ${place} ${'x'.repeat(5000)}`).sort();

  /** Sends one request for every content, eight at a time, while connections are killed; gives the statuses. */
  async function writeAll(send: (content: string) => Promise<Response>): Promise<Map<string, number>> {
    const statuses = new Map<string, number>();
    const waiting = contents.values();
    const client = async () => {
      for (const content of waiting) {
        const answer = await send(content);
        await answer.arrayBuffer();
        statuses.set(content, answer.status);
      }
    };
    let writing = true;
    const clients = Promise.all(Array.from({ length: 8 }, client)).finally(() => {
      writing = false;
    });
    while (writing) {
      const before = statuses.size;
      await kill();
      await vi.waitUntil(() => !writing || statuses.size > before + 20, { ...patience, interval: 2 });
    }
    await clients;
    return statuses;
  }
  const withStatus = (statuses: Map<string, number>, wanted: number) =>
    [...statuses].filter(([, status]) => status === wanted).map(([content]) => content);

  it('cost those requests a 503, and leave behind whole posts alone', async () => {
    const statuses = await writeAll((content) => write({ content, tags: ['killed'] }));
    const [created, failed] = [withStatus(statuses, 201), withStatus(statuses, 503)];
    expect(created.length + failed.length).toBe(contents.length);
    expect(failed.length).toBeGreaterThan(0);
    const found = await stored('killed');
    // Each that was confirmed is there, once; one that was not may be: the answer can be lost after the commit.
    expect(new Set(found).size).toBe(found.length);
    expect(created.filter((content) => !found.includes(content))).toEqual([]);
    expect(found.filter((content) => !statuses.has(content))).toEqual([]);
    expect((await write({ content: 'next' })).status).toBe(201);
  });

  it('leave exactly one post for each key, once the failed requests were sent again', async () => {
    const send = (content: string) =>
      write({ content, tags: ['keyed'] }, { 'Idempotency-Key': /\d+/.exec(content)?.[0] ?? '' });
    const failed = withStatus(await writeAll(send), 503);
    expect(failed.length).toBeGreaterThan(0);
    for (const content of failed) expect((await send(content)).status).toBe(201);
    expect(await stored('keyed')).toEqual(contents);
  });
});

describe('a database whose every connection is waiting for a lock', () => {
  it('makes the blog answer 503 within the time for a connection and a statement, and works again', async () => {
    await create({ content: 'before' });
    await operator.query('BEGIN; LOCK TABLE posts IN ACCESS EXCLUSIVE MODE');
    const startedAt = performance.now();
    const ask = async () => {
      const answer = await deployment.blog('/blogs');
      const { code } = (await answer.json()) as Problem;
      return { status: answer.status, code, tookMs: performance.now() - startedAt };
    };
    const { result: asked, lagMs } = await withLag(() =>
      Promise.all(Array.from({ length: 5 * poolSize }, ask)),
    );
    await operator.query('ROLLBACK');
    for (const { status, code, tookMs } of asked) {
      expect({ status, code }).toEqual({ status: 503, code: 'database_unavailable' });
      expect(tookMs).toBeLessThan(4000 + lagMs);
    }
    const next = await Promise.all(
      Array.from({ length: 5 * poolSize }, () => deployment.blog('/blogs?limit=1')),
    );
    expect(next.map(({ status }) => status)).toEqual(Array(5 * poolSize).fill(200));
  });
});

describe('two writes that name the same version', () => {
  const changes = {
    'PUT and PUT': ['PUT', 'PUT'],
    'PUT and PATCH': ['PUT', 'PATCH'],
    'PATCH and DELETE': ['PATCH', 'DELETE'],
  };
  it.each(Object.entries(changes))('are one success and one refusal (%s)', async (_, methods) => {
    for (let round = 0; round < 10; round++) {
      const created = await write({ content: 'first' });
      const { id } = (await created.json()) as Post;
      const headers = { 'If-Match': created.headers.get('etag') ?? '' };
      const answers = await Promise.all(
        methods.map((method, place) =>
          deployment.blog(`/blogs/${id}`, {
            method,
            headers,
            ...(method !== 'DELETE' && { json: { content: `by ${place}` } }),
          }),
        ),
      );
      const [winner, ...others] = answers.filter(({ ok }) => ok);
      expect(others).toEqual([]);
      const [loser] = answers.filter(({ ok }) => !ok);
      if (winner?.status === 204) {
        expect(loser?.status).toBe(404);
        continue;
      }
      expect(winner?.status).toBe(200);
      expect(loser?.status).toBe(412);
      expect(loser?.headers.get('etag')).toBe(winner?.headers.get('etag'));
      const now = (await (await deployment.blog(`/blogs/${id}`)).json()) as Post;
      expect(now).toEqual(await winner?.json());
      expect(now.version).toBe(2);
    }
  });
});

/** Sends the path as it is: no client would. */
async function send(method: string, path: string) {
  const { hostname, port } = new URL(deployment.url);
  const headers = { Authorization: `Bearer ${blogToken}`, 'Content-Type': 'application/json' };
  const sent = request({ hostname, port, method, path, headers });
  sent.end(method === 'PUT' || method === 'PATCH' ? '{"content":"x"}' : undefined);
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).once('error', reject);
  });
  return {
    status: answer.statusCode ?? 0,
    type: answer.headers['content-type'],
    text: await readAll(answer),
  };
}

describe('an odd id', () => {
  const ids = {
    'no UUID': '42',
    'almost a UUID': '01900000-0000-7000-8000-00000000000',
    'a UUID in braces': '%7B01900000-0000-7000-8000-000000000000%7D',
    'a NUL': '%00',
    'a NUL at the end': '01900000-0000-7000-8000-000000000000%00',
    undecodable: '%E0%A4%A',
    '10,000 characters': 'x'.repeat(10_000),
    'a way up': '../',
    'an encoded way up': '..%2F..%2Fetc%2Fpasswd',
    'a lone surrogate in CESU-8': '%ED%A0%80',
    SQL: "'%3B%20DROP%20TABLE%20posts%3B--",
    'a property of every object': '__proto__',
    'a line break': '%0D%0AX-Injected:%201',
  };
  it.each(Object.entries(ids))('is 404 or 400 for every method: %s', async (_, id) => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const { status, type, text } = await send(method, `/blogs/${id}`);
      // One level up is another address, which exists.
      if (id === '../') expect([200, 404, 405]).toContain(status);
      else {
        expect([400, 404]).toContain(status);
        expect(type).toMatch(/^application\/problem\+json/);
        expect(JSON.parse(text)).toMatchObject({ status });
      }
    }
  });
});

describe('an awkward text', () => {
  it.each(['"\\u0000"', '"a\\u0000b"', '"\\ud83d"', '"\\udc00\\ud800"'])(
    'that PostgreSQL cannot hold is 400 in every field: %s',
    async (json) => {
      const value = JSON.parse(json) as string;
      for (const fields of [{ content: value }, { title: value }, { author: value }, { tags: [value] }]) {
        const answer = await write({ content: 'x', ...fields });
        expect(answer.status).toBe(400);
        expect(await answer.json()).toMatchObject({ code: 'invalid_request' });
      }
      for (const name of ['tag', 'author', 'q']) {
        const query = value.isWellFormed() ? encodeURIComponent(value) : '%ED%A0%BD';
        expect((await deployment.blog(`/blogs?${name}=${query}`)).status).toBe(400);
      }
    },
  );

  const texts = conversationShapes
    .filter(({ accepted, messages }) => accepted && messages.length < 50)
    .flatMap(({ messages }) => messages.map(({ content = '' }) => content))
    .filter((content) => !content.includes('\u0000') && content.length < 200_000 && !isBlank(content));

  it('is kept byte for byte otherwise, wherever it is read', async () => {
    const tags = ['awkward'];
    for (const content of new Set(texts)) {
      const title = [...content].slice(0, 300).join('');
      const answer = await write({ content, title, tags });
      expect(answer.status, content.slice(0, 50)).toBe(201);
      const post = (await answer.json()) as Post;
      expect(post).toMatchObject({ content, title });
      expect(await (await deployment.blog(`/blogs/${post.id}`)).json()).toEqual(post);
      const markdown = await deployment.blog(`/blogs/${post.id}`, { headers: { Accept: 'text/markdown' } });
      expect(Buffer.from(await markdown.arrayBuffer()).equals(Buffer.from(content))).toBe(true);
      const [newest] = (await (await deployment.blog('/blogs?tag=awkward&limit=1')).json()) as Post[];
      expect(newest).toEqual(post);
      const { rows } = await operator.query('SELECT content FROM posts WHERE id = $1', [post.id]);
      expect(rows).toEqual([{ content }]);
    }
  });
});
