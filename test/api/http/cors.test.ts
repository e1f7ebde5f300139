import express, { type RequestHandler } from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { allowOrigins, allowReaders } from '../../../api/http/cors.js';
import { parseConfig } from '../../../shared/config/config.js';
import { startApp } from '../../support/app.js';
import { type Served, serve } from '../../support/serve.js';

const page = 'https://app.example.org';
const other = 'https://other.example';
const servers: Served[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

/** The permissions of a page, in an answer's headers: of a preflight for the method, or of the request itself. */
async function open(policy: RequestHandler) {
  const server = await serve(express().use(policy, (_request, response) => void response.json({})));
  servers.push(server);
  return async (method: string, origin: string, { preflight = true } = {}) => {
    const headers = {
      ...{ Origin: origin, 'Access-Control-Request-Method': method },
      'Access-Control-Request-Headers': asked,
    };
    const response = await fetch(server.url, { method: preflight ? 'OPTIONS' : method, headers });
    return { status: response.status, ...Object.fromEntries(response.headers) } as Record<string, unknown>;
  };
}
const allowed = 'access-control-allow-origin';
// Of the client of OpenAI in Firefox, of the blog's, and one that is in no list.
const asked = 'authorization,if-match,user-agent,x-of-a-page,x-stainless-os';
const some = await open(allowOrigins(['https://third.example.org', page]));
const any = await open(allowOrigins(['*']));

describe('allowOrigins', () => {
  it('a preflight of a page that may send requests -> is answered with what it may send', async () => {
    expect(await some('POST', page)).toMatchObject({
      ...{ status: 204, [allowed]: page, 'access-control-max-age': '7200' },
      'access-control-allow-headers': asked,
      vary: expect.stringMatching(/Access-Control-Request-Headers/),
      'access-control-allow-methods': 'GET,POST,DELETE',
    });
  });

  it('a request of such a page -> it may read the answer with all of its headers', async () => {
    expect(await some('POST', page, { preflight: false })).toMatchObject({
      ...{ [allowed]: page, vary: expect.stringMatching(/Origin/), 'access-control-expose-headers': '*' },
    });
  });

  it.each([
    ['another origin', 'https://example.org'],
    ['another scheme', 'http://app.example.org'],
    ['a longer name', 'https://app.example.org.evil.example'],
    ['no origin that can be named', 'null'],
  ])('%s -> is allowed nothing', async (_, origin) => {
    for (const preflight of [true, false])
      expect(await some('POST', origin, { preflight })).not.toHaveProperty(allowed);
  });

  it('credentials that a browser adds by itself -> are never allowed', async () => {
    for (const ask of [some, any])
      expect(await ask('POST', page)).not.toHaveProperty('access-control-allow-credentials');
    expect((await any('POST', page, { preflight: false }))[allowed]).toBe('*');
  });
});

describe('allowReaders', () => {
  const anybody = {
    ...{ [allowed]: '*', 'access-control-allow-headers': 'If-None-Match' },
    'access-control-allow-methods': 'GET,HEAD',
  };
  const writer = {
    [allowed]: page,
    'access-control-allow-headers': asked,
    'access-control-allow-methods': 'GET,POST,PUT,PATCH,DELETE',
  };

  it.each([
    ['reads are public', [], true, { reader: anybody, writerReads: anybody, writerWrites: undefined }],
    ['a page may write', [page], true, { reader: anybody, writerReads: writer, writerWrites: writer }],
    ['reads take a token', [page], false, { reader: undefined, writerReads: writer, writerWrites: writer }],
  ])(
    '%s -> other pages may read or not, and none of them may write',
    async (_, origins, publicReads, may) => {
      const ask = await open(allowReaders(origins, { publicReads }));
      const permissionsOf = async (method: string, origin: string) => {
        const headers = await ask(method, origin);
        return headers[allowed] === undefined ? undefined : headers;
      };
      const expected = (headers: object | undefined) => headers && expect.objectContaining(headers);
      for (const method of ['GET', 'HEAD']) {
        expect(await permissionsOf(method, other)).toEqual(expected(may.reader));
        const answer = await ask(method, other, { preflight: false });
        expect(answer[allowed]).toBe(may.reader && '*');
        if (may.reader) expect(answer['access-control-expose-headers']).toBe('*');
      }
      expect(await permissionsOf('GET', page)).toEqual(expected(may.writerReads));
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        expect(await permissionsOf(method, page), method).toEqual(expected(may.writerWrites));
        expect(await permissionsOf(method, other), method).toBeUndefined();
      }
    },
  );
});

describe('CORS_ORIGINS', () => {
  it('names a page -> what serves monitoring and documentation is not opened to it', async () => {
    const app = await startApp({ variables: { CORS_ORIGINS: page } });
    for (const path of ['/readyz', '/metrics', '/docs']) {
      const headers = { Origin: page, 'Access-Control-Request-Method': 'GET' };
      const response = await app.ask({ method: 'OPTIONS', path, headers });
      expect(response.headers.get(allowed), path).toBeNull();
    }
    await app.close();
  });

  const parse = (CORS_ORIGINS: string) => parseConfig({ CORS_ORIGINS }, 'config').CORS_ORIGINS;

  it('is a list of origins, or * -> is read as one', () => {
    const origins = ['https://a.example', 'http://localhost:5173'];
    expect(parse(origins.join(', '))).toEqual(origins);
    expect(parse('*')).toEqual(['*']);
  });

  it.each(['https://a.example/', 'https://a.example/x', 'a.example', 'ftp://a.example', 'https://*.example'])(
    'is %s -> is refused',
    (value) => {
      expect(() => parse(value)).toThrow('CORS_ORIGINS');
    },
  );
});
