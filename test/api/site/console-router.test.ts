import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { consoleRouter } from '../../../api/site/console-router.js';
import { serveRoutes, startApp } from '../../support/app.js';
import { createClient } from '../../support/client.js';

const folder = mkdtempSync(join(tmpdir(), 'quillgate-console-'));
mkdirSync(join(folder, 'assets'));
writeFileSync(join(folder, 'index.html'), '<!doctype html><title>The console</title>');
writeFileSync(join(folder, 'assets/index-abc.js'), 'start()');
writeFileSync(join(folder, 'assets/index-abc.css'), 'body {}');
const server = await serveRoutes((routes) => routes.use(consoleRouter(pathToFileURL(`${folder}/`))));
const app = await startApp();
afterAll(async () => {
  await server.close();
  await app.close();
  rmSync(folder, { recursive: true });
});
const ask = createClient(server.url);

describe('GET /admin', () => {
  it('is the page, without credentials, to be asked for again each time', async () => {
    const response = await ask({ path: '/admin' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.text).toContain('The console');
    const etag = response.headers.get('etag') ?? '';
    const again = await ask({ path: '/admin', headers: { 'If-None-Match': etag, 'Cache-Control': '' } });
    expect(again.status).toBe(304);
  });

  it('has a policy that allows what is of this server and nothing inline, and no frame around it', async () => {
    const { headers } = await ask({ path: '/admin' });
    expect(headers.get('content-security-policy')?.split(';')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
    ]);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.has('strict-transport-security')).toBe(false);
  });

  it('is where the application has it, beside the operators’ JSON', async () => {
    const page = await app.ask({ path: '/admin' });
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page.text).toContain('<title>Quillgate console</title>');
    const pools = await app.ask({ path: '/admin/pools', headers: { Accept: 'text/html' } });
    expect(pools.status).toBe(401);
    expect(pools.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });
});

describe('GET /admin/assets', () => {
  it.each([
    ['index-abc.js', 'text/javascript; charset=utf-8', 'start()'],
    ['index-abc.css', 'text/css; charset=utf-8', 'body {}'],
  ])('sends %s, to be kept for ever', async (name, type, text) => {
    const response = await ask({ path: `/admin/assets/${name}` });
    expect(response.headers.get('content-type')).toBe(type);
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.text).toBe(text);
  });

  it.each(['index-abd.js', '..%2findex.html', '%2e%2e/index.html', 'index-abc.js/', ''])(
    'has no %s',
    async (name) => {
      expect((await ask({ path: `/admin/assets/${name}` })).status).toBe(404);
    },
  );
});

describe('other methods', () => {
  it.each(['/admin', '/admin/assets/index-abc.js'])('are refused at %s', async (path) => {
    const response = await ask({ method: 'POST', path });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  });
});
