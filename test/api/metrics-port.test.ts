import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { freePort } from '../../dev/free-port.js';

const folder = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
/** No port 1 is listened on: what is served here needs no store. */
const environment = {
  PATH: process.env.PATH,
  HOST: '127.0.0.1',
  PORT: '0',
  DATABASE_URL: 'postgres://user:password@127.0.0.1:1/x',
  REDIS_URL: 'redis://127.0.0.1:1',
  CHAT_USERNAME: 'tester',
  CHAT_PASSWORD: 'not a secret in a test',
};

const startApi = (variables: Record<string, string>, name: string) =>
  startChild({
    name,
    command: resolve('bin/quillgate'),
    args: ['api'],
    environment: { ...environment, ...variables },
    cwd: folder,
    logFile: join(folder, `${name}.log`),
  });

describe('METRICS_PORT', () => {
  let metricsPort: number;
  let api: ChildProgram;
  beforeAll(async () => {
    metricsPort = await freePort();
    api = await startApi({ METRICS_PORT: String(metricsPort) }, 'apart');
  });
  afterAll(async () => {
    await api?.stop({ graceMs: 10_000 });
    rmSync(folder, { recursive: true });
  });

  const ask = async (port: number, path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  it('takes the metrics off the port of the API', async () => {
    for (const path of ['/metrics', '/METRICS', '/metrics/']) {
      const { status, headers } = await ask(api.port, path);
      expect({ path, status, type: headers.get('content-type') }).toEqual({
        path,
        status: 404,
        type: expect.stringContaining('application/problem+json'),
      });
    }
  });

  it('serves them there, in that spelling alone', async () => {
    expect((await ask(metricsPort, '/metrics')).text).toMatch(/^# TYPE quillgate_/m);
    expect((await ask(metricsPort, '/METRICS')).status).toBe(404);
    expect((await ask(metricsPort, '/metrics/')).status).toBe(404);
    const { status, headers } = await ask(metricsPort, '/metrics', { method: 'POST' });
    expect({ status, allow: headers.get('allow') }).toEqual({ status: 405, allow: 'GET, HEAD' });
  });

  it('serves nothing of the API there', async () => {
    for (const path of ['/chat', '/v1/chat', '/blogs', '/docs', '/openapi.json', '/feed.xml']) {
      const { status, text } = await ask(metricsPort, path);
      expect({ path, status, problem: JSON.parse(text) }).toEqual({
        path,
        status: 404,
        problem: expect.objectContaining({
          code: 'not_found',
          requestId: expect.stringMatching(/^[\w-]{36}$/),
        }),
      });
    }
  });

  it('has the health pages on both, for load balancers and for those who watch', async () => {
    for (const port of [api.port, metricsPort]) {
      expect((await ask(port, '/livez')).status).toBe(200);
      const { status, text } = await ask(port, '/readyz');
      expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 503, body: { status: 'failing' } });
    }
  });

  it('changes nothing when it is not set', async () => {
    const plain = await startApi({}, 'plain');
    const { status } = await ask(plain.port, '/metrics');
    await plain.stop({ graceMs: 10_000 });
    expect(status).toBe(200);
  });
});
