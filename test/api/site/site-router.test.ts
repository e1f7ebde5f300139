import { createHash } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { release } from '../../../shared/runtime/program.js';
import { startApp } from '../../support/app.js';

const app = await startApp({
  variables: {
    CHAT_BASE_URL: 'https://a.example/gate',
    BLOG_BASE_URL: 'https://b.example/my/',
    BLOG_TITLE: '</title><script>alert(1)</script>"&',
  },
});
afterAll(app.close);

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const get = (path: string, headers: Record<string, string> = {}) => app.ask({ path, headers });

describe('an address that nothing serves', () => {
  it('is asked for -> a page for browsers, and a problem for programs', async () => {
    const page = await get('/zanzibar', { Accept: browser });
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(page.text).toContain('<h1>Not found</h1>');
    expect(page.text).not.toContain('zanzibar');
    for (const accept of ['*/*', 'application/json']) {
      const body = { code: 'not_found' };
      expect(await get('/nothing', { Accept: accept })).toMatchObject({ status: 404, body });
    }
    const post = await app.ask({ method: 'POST', path: '/nothing', headers: { Accept: browser } });
    expect(post.headers.get('content-type')).toContain('application/problem+json');
  });
});

describe('GET /', () => {
  it('is asked by a browser -> a page: what this is, who answers, where to go, which release', async () => {
    const { status, headers, text } = await get('/', { Accept: browser });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(text).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(text).toContain('<strong>Real</strong>: OpenAI (');
    expect(text).toContain('<strong>Simulated</strong>: Anthropic (');
    expect(text).toContain('<strong>No worker</strong>: Amazon Bedrock (');
    expect(text).toContain('<strong>Unknown</strong>: Google Vertex AI (');
    expect(text).toContain(`<footer>Release ${release}</footer>`);
    expect([...text.matchAll(/<a .*?href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
      '/admin#/playground',
      '/docs#/chat',
      '/docs#/openai',
      '/my/blogs',
      '/my/feed.xml',
      '/my/feed.json',
      '/docs',
      '/openapi.json',
      '/admin',
      '/readyz',
    ]);
  });

  it('has a request to copy -> a provider with a worker answers it', async () => {
    const { text } = await get('/', { Accept: browser });
    const [, line = ''] = /<code class="copy">(.*)<\/code>/s.exec(text) ?? [];
    const command = line.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('\\\n ', '');
    expect(command).toMatch(/^curl -u NAME -H 'X-LLM: openai' .* https:\/\/a\.example\/gate\/chat$/);
    const [, body = ''] = /-d '(.*?)'/.exec(command) ?? [];
    const [, path = ''] = /https:\/\/a\.example(\S+)$/.exec(command) ?? [];
    expect((await app.chat({ path, body, headers: { 'X-LLM': 'openai' } })).status).toBe(200);
  });

  it('is a page -> no script, and a policy that allows its style alone', async () => {
    const { headers, text } = await get('/', { Accept: browser });
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')?.split('; ')).toEqual([
      "default-src 'none'",
      "img-src 'self'",
      `style-src 'sha256-${hash}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(text).not.toMatch(/<script|\sstyle=|\son\w+=|\ssrc=/);
    expect(text).toContain('&lt;/title&gt;&lt;script&gt;');
  });

  it.each([undefined, '*/*', 'application/json', 'text/html;q=0', 'nonsense'])(
    'is asked with Accept: %s -> JSON',
    async (accept) => {
      const response = await get('/', accept === undefined ? {} : { Accept: accept });
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(response.headers.get('vary')).toBe('Accept');
      expect(response.body).toEqual({
        name: 'Quillgate',
        description: expect.any(String),
        release,
        providers: { openai: 'real', anthropic: 'simulated', bedrock: 'no_worker', vertexai: 'unknown' },
        links: {
          chat: '/gate/chat',
          openai: '/v1/chat/completions',
          blog: '/my/blogs',
          atomFeed: '/my/feed.xml',
          jsonFeed: '/my/feed.json',
          docs: '/docs',
          openapi: '/openapi.json',
          console: '/admin',
          health: '/readyz',
        },
      });
    },
  );

  it('has links -> there is something at each', async () => {
    for (const path of ['/docs', '/openapi.json', '/admin', '/favicon.ico', '/robots.txt']) {
      expect((await get(path)).status).toBe(200);
    }
  });

  it('is asked by who has it -> 304', async () => {
    const { headers } = await get('/', { Accept: browser });
    expect(headers.get('cache-control')).toBe('public, no-cache');
    const etag = headers.get('etag') ?? '';
    const again = await get('/', { Accept: browser, 'If-None-Match': etag });
    expect(again).toMatchObject({ status: 304, text: '' });
    expect(again.headers.get('vary')).toBe('Accept');
  });
});

describe('GET /favicon.ico', () => {
  it('is asked for -> an icon that browsers may keep', async () => {
    const response = await fetch(`${app.url}/favicon.ico`);
    expect(response.headers.get('content-type')).toBe('image/x-icon');
    expect(response.headers.get('cache-control')).toBe('public, max-age=86400');
    const bytes = Buffer.from(await response.arrayBuffer());
    // An ICO with two images, each a PNG at the place that the directory names.
    expect(bytes.subarray(0, 6)).toEqual(Buffer.from([0, 0, 1, 0, 2, 0]));
    for (const entry of [6, 22]) {
      const start = bytes.readUInt32LE(entry + 12);
      expect(bytes.subarray(start + 1, start + 4).toString()).toBe('PNG');
      expect(bytes.readUInt32LE(entry + 8)).toBeGreaterThan(100);
    }
    const headers = { 'If-None-Match': response.headers.get('etag') ?? '' };
    expect((await get('/favicon.ico', headers)).status).toBe(304);
  });
});

describe('GET /robots.txt', () => {
  it('is asked for -> keeps crawlers from searches and from the operators’ pages', async () => {
    const response = await get('/robots.txt');
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(response.text.split('\n')).toEqual([
      'User-agent: *',
      'Disallow: /admin',
      'Disallow: /my/blogs?q=',
      'Disallow: /my/blogs?*&q=',
      'Sitemap: https://b.example/my/sitemap.xml',
      '',
    ]);
  });
});

describe.each(['/', '/favicon.ico', '/robots.txt'])('%s', (path) => {
  it('is asked by HEAD -> no body, and by another method -> 405', async () => {
    expect(await app.ask({ method: 'HEAD', path })).toMatchObject({ status: 200, text: '' });
    for (const method of ['POST', 'DELETE', 'OPTIONS']) {
      const refused = await app.ask({ method, path, headers: { Accept: browser } });
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(refused.body.code).toBe('method_not_allowed');
    }
  });
});
