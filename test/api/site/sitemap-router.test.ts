import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Caller } from '../../../api/access/caller.js';
import type { Authentication } from '../../../api/access/login.js';
import type { TaggedBytes } from '../../../api/http/conditional.js';
import { sitemapRouter } from '../../../api/site/site-router.js';
import { Failure } from '../../../shared/failures.js';
import { serveRoutes } from '../../support/app.js';
import { createAuthentication } from '../../support/authentication.js';
import { createClient, type Sent } from '../../support/client.js';
import { userNamed } from '../../support/identities.js';
import { createRecordingLog } from '../../support/recording-log.js';

const callers: Record<string, Caller> = {
  reader: { ...userNamed('Rita'), scopes: ['blogs:read'] },
  chatter: { ...userNamed('Carl'), scopes: ['chat'] },
};
const documentOf = (text: string): TaggedBytes => ({ body: Buffer.from(text), etag: `"${text}"` });

let isAway: boolean;
let asked: number[];
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
const authentication: Authentication = createAuthentication(createRecordingLog().log, {
  directory: { findToken: async (token) => callers[token] },
});
const server = await serveRoutes((app) => {
  app.locals.authentication = authentication;
  app.use(sitemapRouter('/base', sitemap, [(_request, _response, next) => next()]));
});
afterAll(server.close);
beforeEach(() => {
  authentication.publicReads = true;
  isAway = false;
  asked = [];
});

const ask = createClient(server.url);
const get = (query = '', sent: Sent = {}) => ask({ path: `/base/sitemap.xml${query}`, ...sent });

describe('GET /sitemap.xml', () => {
  it('is the index, and with a number a part', async () => {
    const index = await get();
    expect(index.headers.get('content-type')).toBe('application/xml; charset=utf-8');
    expect(index.headers.get('cache-control')).toBe('public, no-cache');
    expect(index.text).toBe('index');
    expect((await get('?part=2')).text).toBe('two');
    expect((await get('?utm=x')).text).toBe('index');
  });

  it.each(['?part=', '?part=0', '?part=02', '?part=-1', '?part=1e3', '?part=2&part=2', '?part=3'])(
    'has nothing at %s',
    async (query) => {
      expect(await get(query)).toMatchObject({ status: 404, body: { code: 'not_found' } });
      expect(asked.every((number) => number === 3)).toBe(true);
    },
  );

  it('is not sent again to who has it, has no body for HEAD, and no other method', async () => {
    const again = await get('', { headers: { 'If-None-Match': '"index"' } });
    expect(again).toMatchObject({ status: 304, text: '' });
    expect(await get('', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
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
      expect((await get(query, { token: 'chatter' })).status).toBe(403);
    }
    const read = await get('', { token: 'reader' });
    expect([read.status, read.headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
  });

  it('is 503 while the database is away', async () => {
    isAway = true;
    const response = await get();
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, expect.any(String)]);
  });
});
