import pg from 'pg';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Post } from '../../shared/contracts/contract.js';
import { authorization, type BlogCall, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

/** Where the blog is mounted, which is not where chat is. */
const base = '/site';
const origin = 'https://blog.example';

const deployment = await startDeployment({
  variables: {
    ...profiles.plain,
    ...{ BLOG_BASE_URL: `${origin}${base}`, BLOG_TITLE: 'Tales', DATABASE_POOL_SIZE: '4' },
    CHAT_BASE_URL: 'https://chat.example/api',
    CHAT_BASE_URL_ALT: 'https://chat.example/api/v1',
  },
});
afterAll(deployment.stop);

const blog = (path: string, call?: BlogCall) => deployment.blog(`${base}/blogs${path}`, call);
const create = async (json: object): Promise<Post> => (await blog('', { json })).json() as Promise<Post>;
const anybody = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${deployment.url}${path}`, { headers });
const textOf = async (path: string, headers = {}) => (await anybody(path, headers)).text();

describe('the pages of a blog with a published post and a draft', () => {
  it('are followed from the index and by the sitemap → the post and its tag, and nothing of the draft', async () => {
    await create({ title: 'To be found', content: 'Here, *and* there', tags: ['paged'] });
    await create({ title: 'Not to be found', content: 'Hidden', status: 'draft' });
    const html = { Accept: 'text/html,*/*;q=0.8' };
    // On a busy machine the first page may come without the excerpt, which the next one has.
    const index = await vi.waitFor(
      async () => {
        const page = await textOf(`${base}/blogs`, html);
        expect(page).toContain('<p dir="auto">Here, and there</p>');
        return page;
      },
      { ...patience, interval: 300 },
    );
    expect(index).toContain(`<a href="${base}/blogs/to-be-found">To be found</a>`);
    expect(index).not.toContain('Not to be found');
    const post = await textOf(`${base}/blogs/to-be-found`, html);
    expect(post).toContain(`<link rel="canonical" href="${origin}${base}/blogs/to-be-found">`);
    expect(post).toContain('<meta name="description" content="Here, and there">');
    expect(post).toContain(`<a rel="tag" href="${base}/blogs?tag=paged">`);
    expect(await textOf('/robots.txt')).toContain(`Sitemap: ${origin}${base}/sitemap.xml`);
    expect(await textOf(`${base}/sitemap.xml`)).toContain(`<loc>${origin}${base}/sitemap.xml?part=1</loc>`);
    const part = await textOf(`${base}/sitemap.xml?part=1`);
    expect(part).toContain(`<loc>${origin}${base}/blogs/to-be-found</loc>`);
    expect(part).not.toContain('not-to-be-found');
  });

  it('a title in Japanese → a slug in its letters, encoded in every address', async () => {
    const { id, slug } = await create({ title: '日本語、こんにちは', content: 'Here' });
    expect(slug).toBe('日本語-こんにちは');
    const address = `${base}/blogs/${encodeURIComponent(slug)}`;
    const html = await textOf(address, { Accept: 'text/html' });
    expect(html).toContain(`<link rel="canonical" href="${origin}${address}">`);
    expect(await textOf(`${base}/sitemap.xml?part=1`)).toContain(`<loc>${origin}${address}</loc>`);
    expect(await textOf(`${base}/feed.xml`)).toContain(`${origin}${address}`);
    await blog(`/${id}`, { method: 'PATCH', json: { slug: '再見' } });
    const moved = await fetch(`${deployment.url}${address}`, { redirect: 'manual' });
    const location = `${base}/blogs/${encodeURIComponent('再見')}`;
    expect([moved.status, moved.headers.get('location')]).toEqual([308, location]);
  });
});

describe('the feeds', () => {
  it('decomposed letters in address, tag and query → the post, whose tags are composed', async () => {
    const [title, slug] = ['Ёлка в лесу', 'が-日本'].map((text) => text.normalize('NFD'));
    const { id, ...post } = await create({
      title,
      slug,
      tags: ['Näh'.normalize('NFD')],
      content: 'Kö'.normalize('NFD'),
    });
    expect(post).toMatchObject({
      slug: slug?.normalize('NFC'),
      tags: ['Näh'.normalize('NFC')],
      content: 'Kö'.normalize('NFD'),
    });
    for (const form of ['NFC', 'NFD']) {
      const as = (text: string) => encodeURIComponent(text.normalize(form));
      expect((await anybody(`${base}/blogs/${as('が-日本')}`)).status).toBe(200);
      for (const query of [`tag=${as('Näh')}`, `q=${as('Kö')}`])
        expect(await (await anybody(`${base}/blogs?${query}`)).json()).toMatchObject([{ id }]);
    }
    await blog(`/${id}`, { method: 'DELETE' });
  });

  it('a post is published and deleted → they have it under its public address, and then no more', async () => {
    const { id } = await create({ title: 'News today', content: '*new*' });
    await create({ content: 'hidden canary', status: 'draft' });
    const json = await anybody(`${base}/feed.json`);
    expect(json.headers.get('content-type')).toMatch(/^application\/feed\+json/);
    const feed = (await json.json()) as { title: string; items: { id: string; url: string }[] };
    expect(feed.title).toBe('Tales');
    expect(feed.items[0]).toMatchObject({ url: `${origin}${base}/blogs/news-today` });
    const atom = await anybody(`${base}/feed.xml`);
    expect(atom.headers.get('content-type')).toMatch(/^application\/atom\+xml/);
    const text = await atom.text();
    expect(text).toContain('News today');
    expect(text + JSON.stringify(feed)).not.toContain('hidden canary');
    const known = { 'If-None-Match': atom.headers.get('etag') ?? '' };
    expect((await anybody(`${base}/feed.xml`, known)).status).toBe(304);
    await blog(`/${id}`, { method: 'DELETE' });
    expect(await textOf(`${base}/feed.xml`, known)).not.toContain('News today');
  });
});

describe('an address of the blog', () => {
  it.each([
    ['/blogs', 'GET, HEAD, POST'],
    ['/blogs/01900000-0000-7000-8000-000000000000', 'GET, HEAD, PUT, PATCH, DELETE'],
    ['/feed.json', 'GET, HEAD'],
  ])('is asked by HEAD and by OPTIONS → as GET without a body, and 405 (%s)', async (path, allow) => {
    const address = `${deployment.url}${base}${path}`;
    const [get, head] = [await fetch(address), await fetch(address, { method: 'HEAD' })];
    expect([head.status, head.headers.get('etag')]).toEqual([get.status, get.headers.get('etag')]);
    expect(await head.text()).toBe('');
    const refused = await fetch(address, { method: 'OPTIONS' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, allow]);
  });
});

describe('the bases of blog and chat', () => {
  it('are apart → each operation is below its own alone, and a chat is found where it was asked for', async () => {
    for (const path of ['/blogs', '/feed.xml']) expect((await anybody(path)).status).toBe(404);
    for (const path of ['/chat', `${base}/chat`]) expect((await deployment.chat({ path })).status).toBe(404);
    for (const path of ['/api/chat', '/api/v1/chat'])
      expect((await deployment.chat({ path })).status).toBe(200);
    const asked = await deployment.chat({ path: '/api/v1/chat', headers: { Prefer: 'respond-async' } });
    const location = asked.headers.get('location') ?? '';
    expect(location).toMatch(/^\/api\/v1\/chat\/[0-9a-f-]{36}$/);
    expect((await anybody(location, { Authorization: authorization })).status).toBe(200);
  });

  it('are described → /openapi.json has the addresses, and the headers that an answer always has', async () => {
    const document = JSON.parse(await textOf('/openapi.json'));
    expect(document.info).toMatchObject({ title: 'Quillgate', version: '1.0.0' });
    const bases = ['https://chat.example/api', 'https://chat.example/api/v1'];
    expect(document.servers).toEqual(bases.map((url) => ({ url })));
    const { post } = document.paths['/chat'];
    const required = Object.entries<{ headers: Record<string, { required: boolean }> }>(
      post.responses,
    ).flatMap(([status, { headers }]) =>
      Object.entries(headers ?? {}).flatMap(([name, header]) =>
        header.required ? [`${status} ${name}`] : [],
      ),
    );
    expect(required).toContain('202 Location');
    for (const name of ['Content-Location', 'Idempotency-Replayed', 'X-LLM-Finish-Reason', 'Retry-After'])
      expect(required.filter((header) => header.endsWith(name))).toEqual([]);
    const header = post.parameters.find(({ name }: { name: string }) => name === 'X-LLM');
    expect(header).toMatchObject({ in: 'header', required: true });
  });
});

describe('/docs', () => {
  it('is opened → a page that loads everything from this server, and nothing that it does not need is there', async () => {
    const page = await anybody('/docs');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    const sources = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, path]) => path ?? '',
    );
    expect(sources.length).toBeGreaterThan(2);
    for (const source of sources) {
      expect(source).toMatch(/^\/docs\//);
      expect((await anybody(source)).status).toBe(200);
    }
    for (const path of ['swagger-initializer.js', 'package.json'])
      expect((await anybody(`/docs/${path}`)).status).toBe(404);
    for (const headers of [{ Range: 'bytes=99999999-' }, { 'If-Match': '"x"' }])
      expect((await anybody('/docs/swagger-ui.css', headers)).status).toBe(200);
    const posted = await fetch(`${deployment.url}/docs`, { method: 'POST' });
    expect(posted.status).toBe(405);
    expect(posted.headers.get('content-security-policy')).not.toMatch(/upgrade-insecure-requests/);
  });
});

describe('connections to the database that are killed while posts are written', () => {
  /** Works on the same database, past the server that is tested. */
  const operator = () => new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
  /** Resolves when they have ended. */
  const kill = (client: pg.Client) =>
    client.query(
      `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  /** The same while at least one is in the middle of its statement, which waits for a lock. */
  const killInStatement = async (client: pg.Client) => {
    await client.query('BEGIN');
    await client.query('LOCK TABLE posts IN EXCLUSIVE MODE');
    const waits = () =>
      client.query(`SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'posts'::regclass`);
    await vi.waitUntil(async () => (await waits()).rows.length > 0, patience);
    await kill(client);
    await client.query('ROLLBACK');
  };

  it('→ cost those requests a 503, and leave one post for each key once they were sent again', async () => {
    const client = operator();
    await client.connect();
    const contents = Array.from({ length: 150 }, (_, place) => `Post ${place} ${'x'.repeat(5000)}`).sort();
    const statuses = new Map<string, number>();
    const send = async (content: string) => {
      const headers = { 'Idempotency-Key': /\d+/.exec(content)?.[0] ?? '' };
      const answer = await blog('', { json: { content, tags: ['keyed'] }, headers });
      await answer.arrayBuffer();
      statuses.set(content, answer.status);
    };
    const waiting = contents.values();
    const write = async () => {
      for (const content of waiting) await send(content);
    };
    let writing = true;
    const writers = Promise.all(Array.from({ length: 8 }, write)).finally(() => {
      writing = false;
    });
    await killInStatement(client);
    while (writing) {
      const before = statuses.size;
      await kill(client);
      await vi.waitUntil(() => !writing || statuses.size > before + 20, { ...patience, interval: 2 });
    }
    await writers;
    expect(new Set(statuses.values())).toEqual(new Set([201, 503]));
    const failed = contents.filter((content) => statuses.get(content) === 503);
    for (const content of failed) await send(content);
    expect(new Set(statuses.values())).toEqual(new Set([201]));
    const { rows } = await client.query(`SELECT content FROM posts WHERE tags @> ARRAY['keyed']`);
    expect(rows.map(({ content }) => content as string).sort()).toEqual(contents);
    await client.end();
  });
});
