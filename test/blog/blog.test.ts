import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post } from '../../shared/contract.js';
import { type BlogCall, blogToken, type Deployment, startDeployment } from '../support/deployment.js';

/** Where the blog is mounted, which is not where chat is. */
const base = '/site';
const origin = 'https://blog.example';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    workers: 0,
    variables: { BLOG_BASE_URL: `${origin}${base}`, BLOG_TITLE: 'Tales' },
  });
});
afterAll(() => deployment.stop());

const blog = (path: string, call?: BlogCall) => deployment.blog(`${base}/blogs${path}`, call);
const create = async (json: object): Promise<Post> => (await blog('', { json })).json() as Promise<Post>;
const anybody = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${deployment.url}${path}`, { headers });

describe('a post', () => {
  it('is written, read, replaced, patched and deleted', async () => {
    const created = await blog('', { json: { title: 'Grüße', content: '# Hello\n', tags: ['a'] } });
    expect(created.status).toBe(201);
    const post = (await created.json()) as Post;
    const address = created.headers.get('location') ?? '';
    expect(address).toBe(`${base}/blogs/${post.id}`);
    expect(post).toMatchObject({ title: 'Grüße', author: 'tester', slug: 'gruesse', version: 1 });

    const read = await anybody(address);
    expect(await read.json()).toEqual(post);
    const etag = read.headers.get('etag') ?? '';
    expect((await anybody(address, { 'If-None-Match': etag })).status).toBe(304);
    expect((await anybody(`${address}/`)).status).toBe(404);

    const matching = { 'If-Match': etag };
    const put = { method: 'PUT', json: { content: 'Second' }, headers: matching };
    const replaced = await blog(`/${post.id}`, put);
    expect(await replaced.json()).toMatchObject({ content: 'Second', title: null, tags: [], version: 2 });
    expect((await blog(`/${post.id}`, put)).status).toBe(412);

    const merge = { 'Content-Type': 'application/merge-patch+json' };
    const patched = await blog(`/${post.id}`, { method: 'PATCH', json: { title: 'Third' }, headers: merge });
    expect(await patched.json()).toMatchObject({ content: 'Second', title: 'Third', version: 3 });

    expect((await blog(`/${post.id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await blog(`/${post.id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await anybody(address)).status).toBe(404);
  });

  it('is served as JSON, as the Markdown it was written in and as a page that cannot run anything', async () => {
    const content = '# Title\r\n\r\n<script>alert(1)</script>\n[x](javascript:alert(1)) **bold**\n';
    const { id } = await create({ content, title: '<b>"Title"</b>' });
    const path = `${base}/blogs/${id}`;
    expect((await anybody(path)).headers.get('content-type')).toMatch(/^application\/json/);
    const markdown = await anybody(path, { Accept: 'text/markdown' });
    expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    expect(await markdown.text()).toBe(content);
    const page = await anybody(path, { Accept: 'text/html' });
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'/);
    const html = await page.text();
    expect(html).toContain('<strong>bold</strong>');
    expect(html).not.toMatch(/<script|href="javascript|<b>"/i);
  });

  it('is made once however often a request is sent again, and refused when the key was another one', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => blog('', { json: { content: 'once' }, headers })),
    );
    const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as Post).id));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201));
    expect(new Set(ids).size).toBe(1);
    const replayed = answers.filter((answer) => answer.headers.get('idempotency-replayed') === 'true');
    expect(replayed).toHaveLength(9);
    expect((await blog('', { json: { content: 'other' }, headers })).status).toBe(422);
  });

  it('is seen by those who may write alone, as long as it is a draft', async () => {
    const { id } = await create({ content: 'not yet', status: 'draft', tags: ['drafts'] });
    const find = async (list: Response) => ((await list.json()) as Post[]).map((post) => post.id);
    expect((await anybody(`${base}/blogs/${id}`)).status).toBe(404);
    expect(await find(await anybody(`${base}/blogs?tag=drafts`))).toEqual([]);
    expect(await find(await blog('?tag=drafts'))).toEqual([id]);
    await blog(`/${id}`, { method: 'PATCH', json: { status: 'published' } });
    expect(await find(await anybody(`${base}/blogs?tag=drafts`))).toEqual([id]);
  });
});

describe('the list', () => {
  it('leads through every post once, newest first, by Link and by cursor', async () => {
    const tags = ['paged'];
    const written: string[] = [];
    for (let place = 0; place < 25; place++) {
      const { id } = await create({ content: `Post ${place}`, tags });
      written.unshift(id);
    }
    const byLink: string[] = [];
    for (let next: string | undefined = `${base}/blogs?tag=paged&limit=7`; next; ) {
      const page: Response = await anybody(next);
      byLink.push(...((await page.json()) as Post[]).map(({ id }) => id));
      next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
    }
    expect(byLink).toEqual(written);
    const byCursor: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path: string = `${base}/blogs?tag=paged&limit=10&envelope=true${cursor && `&cursor=${cursor}`}`;
      const page = (await (await anybody(path)).json()) as { data: Post[]; next: string | null };
      byCursor.push(...page.data.map(({ id }) => id));
      cursor = page.next;
    }
    expect(byCursor).toEqual(written);
  });

  it('finds words and authors', async () => {
    const { id } = await create({ content: 'A quokka is smiling.', author: 'Zoë' });
    const find = async (query: string) => {
      const posts = (await (await anybody(`${base}/blogs?${query}`)).json()) as Post[];
      return posts.map((post) => post.id);
    };
    expect(await find('q=quokkas')).toEqual([id]);
    expect(await find(`author=${encodeURIComponent('Zoë')}`)).toEqual([id]);
    expect(await find('q=quokka+-smile')).toEqual([]);
  });

  it('is an array of nothing where nothing is found', async () => {
    const empty = await anybody(`${base}/blogs?tag=nothing`);
    expect(empty.status).toBe(200);
    expect(await empty.json()).toEqual([]);
    expect(empty.headers.get('link')).toBeNull();
  });
});

describe('the feeds', () => {
  it('hold what was published last, under the public address', async () => {
    const { id } = await create({ title: 'News today', content: '*new*' });
    await create({ content: 'hidden canary', status: 'draft' });
    const json = await anybody(`${base}/feed.json`);
    expect(json.headers.get('content-type')).toMatch(/^application\/feed\+json/);
    const feed = (await json.json()) as { title: string; items: { id: string; url: string }[] };
    expect(feed.title).toBe('Tales');
    expect(feed.items[0]).toMatchObject({ url: `${origin}${base}/blogs/${id}` });
    const atom = await anybody(`${base}/feed.xml`);
    expect(atom.headers.get('content-type')).toMatch(/^application\/atom\+xml/);
    const text = await atom.text();
    expect(text).toContain('News today');
    expect(text + JSON.stringify(feed)).not.toContain('hidden canary');
    const known = { 'If-None-Match': atom.headers.get('etag') ?? '' };
    expect((await anybody(`${base}/feed.xml`, known)).status).toBe(304);
    await blog(`/${id}`, { method: 'DELETE' });
    expect(await (await anybody(`${base}/feed.xml`, known)).text()).not.toContain('News today');
  });
});

describe('an address of the blog', () => {
  it.each([
    ['/blogs', 'GET, HEAD, POST'],
    ['/blogs/01900000-0000-7000-8000-000000000000', 'GET, HEAD, PUT, PATCH, DELETE'],
    ['/feed.json', 'GET, HEAD'],
  ])('answers HEAD, and 405 to what it does not know (%s)', async (path, allow) => {
    const address = `${deployment.url}${base}${path}`;
    const [get, head] = [await fetch(address), await fetch(address, { method: 'HEAD' })];
    expect(head.status).toBe(get.status);
    expect(await head.text()).toBe('');
    expect(head.headers.get('etag')).toBe(get.headers.get('etag'));
    const refused = await fetch(address, { method: 'OPTIONS' });
    expect(refused.status).toBe(405);
    expect(refused.headers.get('allow')).toBe(allow);
  });

  it('is only under the base of the blog', async () => {
    expect((await anybody('/blogs')).status).toBe(404);
    expect((await anybody('/feed.xml')).status).toBe(404);
    expect((await deployment.chat({ path: `${base}/chat` })).status).toBe(404);
  });
});

describe('what is logged', () => {
  it('shows requests, and nothing of posts, queries and tokens', async () => {
    const canary = 'canary27182';
    const { id } = await create({ title: canary, content: canary, tags: [canary], author: canary });
    await blog(`?q=${canary}&tag=${canary}`);
    await blog(`/${canary}`);
    await blog(`/${id}`, { method: 'PUT', json: { content: '\u0000', [canary]: canary } });
    await blog('', { json: { content: canary, slug: canary } });
    await blog('', { json: { content: canary, slug: canary } });
    await blog('', { json: {}, headers: { Authorization: `Bearer ${canary}`, 'Idempotency-Key': canary } });
    await deployment.api.stop({ graceMs: 10_000 });
    const logs = deployment.logs();
    expect(logs).toContain('"route":"/blogs/:id"');
    expect(logs).not.toContain(canary);
    expect(logs).not.toContain(blogToken);
    expect(logs).not.toContain('unexpected error');
  });
});
