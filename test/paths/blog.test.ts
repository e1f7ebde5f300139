import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post } from '../../shared/contract.js';
import { type BlogCall, type Deployment, startDeployment } from '../support/deployment.js';

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

describe('the pages', () => {
  const Accept = 'text/html,*/*;q=0.8';

  it('lead from the index to a post and its tag, and search engines by the sitemap', async () => {
    await create({ title: 'To be found', content: 'Here', tags: ['paged'] });
    await create({ title: 'Not to be found', content: 'Hidden', status: 'draft' });
    const index = await (await anybody(`${base}/blogs`, { Accept })).text();
    expect(index).toContain(`<a href="${base}/blogs/to-be-found">To be found</a>`);
    expect(index).not.toContain('Not to be found');
    const post = await (await anybody(`${base}/blogs/to-be-found`, { Accept })).text();
    expect(post).toContain(`<link rel="canonical" href="${origin}${base}/blogs/to-be-found">`);
    expect(post).toContain(`<a rel="tag" href="${base}/blogs?tag=paged">`);
    expect(await (await anybody('/robots.txt')).text()).toContain(`Sitemap: ${origin}${base}/sitemap.xml`);
    const map = await (await anybody(`${base}/sitemap.xml`)).text();
    expect(map).toContain(`<loc>${origin}${base}/sitemap.xml?part=1</loc>`);
    const part = await (await anybody(`${base}/sitemap.xml?part=1`)).text();
    expect(part).toContain(`<loc>${origin}${base}/blogs/to-be-found</loc>`);
    expect(part).not.toContain('not-to-be-found');
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
    expect(feed.items[0]).toMatchObject({ url: `${origin}${base}/blogs/news-today` });
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
