import express from 'express';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PostPages } from '../../../api/blog/post-page.js';
import { expectedVersions, sendPost } from '../../../api/blog/post-representations.js';
import { postOf } from '../../support/posts.js';
import { type Served, serve } from '../../support/serve.js';

const post = postOf({ content: '# Text', version: 7 });

let pages: PostPages;
let server: Served;
beforeAll(async () => {
  const app = express().disable('etag');
  app.get('/', (request) => sendPost(request, post, pages));
  server = await serve(app);
});
afterAll(() => server?.close());
beforeEach(() => {
  pages = createPages('one');
});

const createPages = (edition: string, final = true): PostPages => ({
  edition,
  render: async () => ({ html: '<h1>Text</h1>', csp: "default-src 'none'", final }),
});

const get = (headers: Record<string, string>) => fetch(server.url, { headers });
const html = { Accept: 'text/html' };

describe('sendPost', () => {
  it('sends a page again to who has another edition of it', async () => {
    const etag = (await get(html)).headers.get('etag') ?? '';
    expect((await get({ ...html, 'If-None-Match': etag })).status).toBe(304);
    pages = createPages('two');
    const again = await get({ ...html, 'If-None-Match': etag });
    expect(again.status).toBe(200);
    expect(again.headers.get('etag')).not.toBe(etag);
  });

  it('has the same tags for JSON and Markdown whatever the edition of the pages is', async () => {
    for (const Accept of ['application/json', 'text/markdown']) {
      const etag = (await get({ Accept })).headers.get('etag') ?? '';
      pages = createPages('two');
      expect((await get({ Accept, 'If-None-Match': etag })).status).toBe(304);
    }
  });

  it('tags a page so that a write can be made conditional on it', async () => {
    const etag = (await get(html)).headers.get('etag') ?? '';
    expect(expectedVersions(etag)).toEqual([{ version: 7, updatedAt: post.updatedAt }]);
  });

  it('forbids caching of a page that will be different later', async () => {
    pages = createPages('one', false);
    const { status, headers } = await get(html);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    for (const name of ['etag', 'last-modified']) expect(headers.get(name)).toBeNull();
    expect(headers.get('content-security-policy')).toBe("default-src 'none'");
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('vary')).toBe('Accept, Authorization');
  });

  it.each([`"${','.repeat(15_000)}`, 'a/b,'.repeat(3500), `text/html,${'a/b,'.repeat(3500)}`])(
    'does not weigh an Accept of thousands of characters: it gets JSON',
    async (Accept) => {
      expect((await get({ Accept })).headers.get('content-type')).toBe('application/json; charset=utf-8');
    },
  );
});
