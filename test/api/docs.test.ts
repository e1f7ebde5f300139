import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { docsRouter } from '../../api/docs.js';
import { createApiServer } from '../../api/server.js';

const app = express()
  .disable('etag')
  .use(docsRouter({ openapi: '3.0.0' }));
const api = createApiServer({ app, draining: () => false });
const server = await api.listen(0, '127.0.0.1');
const { port } = server.address() as AddressInfo;
const url = `http://127.0.0.1:${port}`;
afterAll(() => api.close({ graceMs: 0, onGraceOver: () => undefined }));

const names = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

describe('docsRouter', () => {
  it.each([
    ['swagger-ui.css', /^text\/css/],
    ['swagger-ui-bundle.js', /^text\/javascript/],
    ['favicon-32x32.png', /^image\/png/],
  ])('sends %s whole, to be kept for an hour', async (name, type) => {
    const headers = { Range: 'bytes=0-1', 'If-Match': '"x"' };
    const response = await fetch(`${url}/docs/${name}`, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(type);
    expect(response.headers.get('cache-control')).toBe('public, max-age=3600');
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(500);
    const again = await fetch(`${url}/docs/${name}`, {
      // Without a Cache-Control of its own, fetch asks for no answer from a cache.
      headers: { 'If-None-Match': response.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' },
    });
    expect(again.status).toBe(304);
  });

  it('sends the document', async () => {
    const response = await fetch(`${url}/openapi.json`);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toEqual({ openapi: '3.0.0' });
  });

  it('keeps no file open for a client that asks a thousand times and goes', async () => {
    const openFiles = () => readdirSync('/proc/self/fd').length;
    const before = openFiles();
    for (const name of names) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write(`GET /docs/${name} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(1000));
      await once(socket, 'data').catch(() => undefined);
      socket.destroy();
    }
    // The server's ends of these connections are closed by the time it answers another one.
    await (await fetch(`${url}/openapi.json`)).text();
    expect(openFiles()).toBeLessThan(before + 10);
  });
});
