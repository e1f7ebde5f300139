import express from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { promptCanary, providerKeys, watchForCanaries } from './canaries.js';
import { serve } from './serve.js';

let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  const app = express();
  app.get('/metrics', (_request, response) => void response.send(promptCanary));
  app.get('/:status', ({ params, query }, response) => {
    response.status(Number(params.status)).set('X-Header', String(query.header)).send(String(query.body));
  });
  server = await serve(app);
});
afterAll(() => server.close());

/** The error of the watch at the end of a deployment that answered this. */
async function verdict(answer: { status?: number; body?: string; header?: string }, logs = 'nothing') {
  const watch = watchForCanaries(['a-secret']);
  const { status = 200, body = 'x', header = 'x' } = answer;
  const response = await fetch(`${server.url}/${status}?${new URLSearchParams({ body, header })}`);
  watch.inspect(response);
  expect(await response.text()).toBe(body);
  return watch.finish(logs);
}

describe('watchForCanaries', () => {
  it('sees a prompt in an error, and in a log, but lets a reply have it', async () => {
    await expect(verdict({ status: 500, body: promptCanary })).rejects.toThrow(promptCanary);
    await expect(verdict({}, `a line with ${promptCanary}`)).rejects.toThrow(/in a log/);
    await expect(verdict({ body: promptCanary })).resolves.toBeUndefined();
  });

  it('sees a prompt in the metrics', async () => {
    const watch = watchForCanaries([]);
    watch.inspect(await fetch(`${server.url}/metrics`));
    await expect(watch.finish('nothing')).rejects.toThrow('200 of /metrics');
  });

  it.each(['a-secret', ...Object.values(providerKeys)])('sees %s everywhere', async (secret) => {
    await expect(verdict({ body: `{"text":"${secret}"}` })).rejects.toThrow(secret);
    await expect(verdict({ header: secret })).rejects.toThrow(secret);
    await expect(verdict({}, secret)).rejects.toThrow(secret);
  });
});
