import express from 'express';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Caller } from '../../../api/access/caller.js';
import type { Authentication } from '../../../api/access/login.js';
import type { TaggedBytes } from '../../../api/http/conditional.js';
import { notFound, problemHandler } from '../../../api/http/problem.js';
import { sitemapRouter } from '../../../api/site/site-router.js';
import { Failure } from '../../../shared/failures.js';
import { createAuthentication } from '../../support/authentication.js';
import { userNamed } from '../../support/identities.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { type Served, serve } from '../../support/serve.js';

const callers: Record<string, Caller> = {
  reader: { ...userNamed('Rita'), scopes: ['blogs:read'] },
  chatter: { ...userNamed('Carl'), scopes: ['chat'] },
};
const documentOf = (text: string): TaggedBytes => ({ body: Buffer.from(text), etag: `"${text}"` });

let server: Served;
let authentication: Authentication;
let isAway: boolean;
let asked: number[];
beforeAll(async () => {
  const { log } = createRecordingLog();
  const find = async (text: string) => {
    if (isAway) throw new Failure('database_unavailable');
    return documentOf(text);
  };
  const sitemap = {
    find: async (part = 0) => {
      asked.push(part);
      return part === 2 ? find('two') : part === 0 ? find('index') : undefined;
    },
  };
  const app = express().disable('etag');
  authentication = createAuthentication(log, { directory: { findToken: async (token) => callers[token] } });
  app.locals.authentication = authentication;
  app.use((_request, response, next) => next(void response.set('X-Request-Id', 'the-id')));
  app.use(sitemapRouter('/base', sitemap, [(_request, _response, next) => next()]));
  app.use(notFound, problemHandler(log));
  server = await serve(app);
});
afterAll(() => server.close());
beforeEach(() => {
  authentication.publicReads = true;
  isAway = false;
  asked = [];
});

const get = (query = '', init: RequestInit = {}) => fetch(`${server.url}/base/sitemap.xml${query}`, init);
const withToken = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

describe('GET /sitemap.xml', () => {
  it('is the index, and with a number a part', async () => {
    const index = await get();
    expect(index.headers.get('content-type')).toBe('application/xml; charset=utf-8');
    expect(index.headers.get('cache-control')).toBe('public, no-cache');
    expect(await index.text()).toBe('index');
    expect(await (await get('?part=2')).text()).toBe('two');
    expect(await (await get('?utm=x')).text()).toBe('index');
  });

  it.each(['?part=', '?part=0', '?part=02', '?part=-1', '?part=1e3', '?part=2&part=2', '?part=3'])(
    'has nothing at %s',
    async (query) => {
      const response = await get(query);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 'not_found' });
      expect(asked.every((number) => number === 3)).toBe(true);
    },
  );

  it('is not sent again to who has it, has no body for HEAD, and no other method', async () => {
    const again = await get('', { headers: { 'If-None-Match': '"index"' } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const head = await get('', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await get('', { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('is for tokens that may read where posts are', async () => {
    authentication.publicReads = false;
    for (const query of ['', '?part=2', '?part=3']) {
      const refused = await get(query);
      expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringMatching(/^Bearer /),
      ]);
      expect((await get(query, withToken('chatter'))).status).toBe(403);
    }
    const read = await get('', withToken('reader'));
    expect([read.status, read.headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
  });

  it('is 503 while the database is away', async () => {
    isAway = true;
    const response = await get();
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, expect.any(String)]);
  });
});
