import express from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allowOrigins } from '../../../api/http/cors.js';
import { parseConfig } from '../../../shared/config/config.js';
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

  it('lets it read the answer, with the headers that describe the reply', async () => {
    const { headers } = await send(some, page);
    expect(headers['access-control-allow-origin']).toBe(page);
    expect(headers.vary).toMatch(/Origin/);
    expect(headers['access-control-expose-headers']).toMatch(/X-LLM-Model.*X-Request-Id/);
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

describe('CORS_ORIGINS', () => {
  it('opens the chat, and nothing else', async () => {
    const app = await startChatApp({ variables: { CORS_ORIGINS: page } });
    const preflight = async (path: string) => {
      const server = { ...some, url: `${app.url}${path}` };
      return (await send(server, page, 'OPTIONS')).headers['access-control-allow-origin'];
    };
    expect(await Promise.all(['/chat', '/v1/chat', '/chat/x'].map(preflight))).toEqual([page, page, page]);
    expect(await Promise.all(['/blogs', '/readyz', '/metrics', '/docs'].map(preflight))).toEqual(
      new Array(4).fill(undefined),
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
