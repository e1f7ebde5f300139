import express from 'express';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { allowOrigins } from '../../../api/http/cors.js';
import { type Environment, parseConfig } from '../../../shared/config/config.js';
import { startChatApp } from '../../support/chat-app.js';
import { type Served, serve } from '../../support/serve.js';

const page = 'https://app.example.org';
let some: Served;
let any: Served;
beforeAll(async () => {
  const echo = (origins: string[]) =>
    serve(express().use(allowOrigins(origins), (_request, response) => void response.json({})));
  [some, any] = await Promise.all([echo(['https://other.example.org', page]), echo(['*'])]);
});
afterAll(async () => {
  await Promise.all([some.close(), any.close()]);
});

const send = async (server: Served, origin: string, method = 'POST') => {
  const response = await fetch(server.url, {
    method,
    headers: { Origin: origin, 'Access-Control-Request-Method': 'POST' },
  });
  return { status: response.status, headers: Object.fromEntries(response.headers) };
};

describe('allowOrigins', () => {
  it('answers the preflight of a page that may send requests', async () => {
    const { status, headers } = await send(some, page, 'OPTIONS');
    expect(status).toBe(204);
    expect(headers).toMatchObject({ 'access-control-allow-origin': page, 'access-control-max-age': '7200' });
    expect(headers['access-control-allow-headers']).toMatch(/Authorization.*Last-Event-ID.*X-LLM/);
    expect(headers['access-control-allow-methods']).toBe('GET,POST,DELETE');
  });

  it('lets it read the answer with all of its headers', async () => {
    const { headers } = await send(some, page);
    expect(headers['access-control-allow-origin']).toBe(page);
    expect(headers.vary).toMatch(/Origin/);
    expect(headers['access-control-expose-headers']).toBe('*');
  });

  it.each([
    ['another origin', 'https://example.org'],
    ['another scheme', 'http://app.example.org'],
    ['a longer name', 'https://app.example.org.evil.example'],
    ['no origin that can be named', 'null'],
  ])('allows nothing to %s', async (_, origin) => {
    for (const method of ['OPTIONS', 'POST'])
      expect((await send(some, origin, method)).headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('never allows credentials that a browser adds by itself', async () => {
    for (const server of [some, any])
      expect((await send(server, page, 'OPTIONS')).headers).not.toHaveProperty(
        'access-control-allow-credentials',
      );
    expect((await send(any, page)).headers['access-control-allow-origin']).toBe('*');
  });
});

describe('the blog', () => {
  const other = 'https://other.example';
  /** The permissions of a page of an origin: with a preflight, or with the request itself. */
  const openBlog = async (variables: Environment) => {
    const app = await startChatApp({ variables });
    onTestFinished(() => app.close());
    const allowed = async (method: string, origin: string, path = '/blogs', preflight = true) => {
      const asks = { Origin: origin, 'Access-Control-Request-Method': method };
      const options = preflight
        ? { method: 'OPTIONS', headers: asks }
        : { method, headers: { Origin: origin } };
      const { headers } = await fetch(app.url + path, options);
      return headers.get('access-control-allow-origin') && Object.fromEntries(headers);
    };
    return allowed;
  };
  const readable = ['/blogs', '/blogs/a-post', '/feed.json', '/feed.xml'];

  it.each(readable)('lets pages of all origins read %s, also its errors', async (path) => {
    for (const variables of [{}, { CORS_ORIGINS: page }]) {
      const allowed = await openBlog(variables);
      // There is no database here.
      for (const method of ['GET', 'HEAD'])
        expect(await allowed(method, other, path, false)).toMatchObject({
          'access-control-allow-origin': '*',
          'access-control-expose-headers': '*',
        });
      const preflight = await allowed('GET', other, path);
      expect(preflight).toMatchObject({ 'access-control-allow-origin': '*' });
      expect(preflight).toMatchObject({
        'access-control-allow-headers': expect.stringContaining('If-None-Match'),
      });
      expect(JSON.stringify(preflight)).not.toContain('Authorization');
    }
  });

  it('lets those of CORS_ORIGINS alone write, or send a token', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'GET']) {
      const closed = await openBlog({});
      if (method !== 'GET') expect(await closed(method, page), method).toBeNull();
      const open = await openBlog({ CORS_ORIGINS: page });
      expect(await open(method, page, '/blogs/a-post'), method).toMatchObject({
        'access-control-allow-origin': page,
        'access-control-allow-headers': expect.stringMatching(/Authorization.*If-Match/),
        'access-control-allow-methods': expect.stringMatching(/PUT.*PATCH/),
      });
      if (method !== 'GET') expect(await open(method, other), method).toBeNull();
    }
    const open = await openBlog({ CORS_ORIGINS: page });
    expect(await open('POST', page, '/blogs', false)).toMatchObject({ 'access-control-allow-origin': page });
    expect(await open('POST', other, '/blogs', false)).toBeNull();
  });

  it('lets nobody else read where reading takes a token', async () => {
    const allowed = await openBlog({ BLOG_READS: 'token', CORS_ORIGINS: page });
    for (const preflight of [true, false])
      for (const path of readable) {
        expect(await allowed('GET', other, path, preflight)).toBeNull();
        expect(await allowed('GET', page, path, preflight)).toMatchObject({
          'access-control-allow-origin': page,
        });
      }
  });
});

describe('CORS_ORIGINS', () => {
  it('opens chat and blog, and nothing else', async () => {
    const app = await startChatApp({ variables: { CORS_ORIGINS: page } });
    const preflight = async (path: string) => {
      const server = { ...some, url: `${app.url}${path}` };
      return (await send(server, page, 'OPTIONS')).headers['access-control-allow-origin'];
    };
    expect(await Promise.all(['/chat', '/v1/chat', '/chat/x', '/blogs'].map(preflight))).toEqual(
      new Array(4).fill(page),
    );
    expect(await Promise.all(['/readyz', '/metrics', '/docs'].map(preflight))).toEqual(
      new Array(3).fill(undefined),
    );
    expect((await app.post({ headers: { Origin: page } })).headers.get('access-control-allow-origin')).toBe(
      page,
    );
    await app.close();
  });

  const parse = (CORS_ORIGINS: string) => parseConfig({ CORS_ORIGINS }, 'config').CORS_ORIGINS;

  it('is a list of origins, or *', () => {
    expect(parse('https://a.example, http://localhost:5173')).toEqual([
      'https://a.example',
      'http://localhost:5173',
    ]);
    expect(parse('*')).toEqual(['*']);
  });

  it.each(['https://a.example/', 'https://a.example/x', 'a.example', 'ftp://a.example', 'https://*.example'])(
    'is refused as %s',
    (value) => {
      expect(() => parse(value)).toThrow('CORS_ORIGINS');
    },
  );
});
