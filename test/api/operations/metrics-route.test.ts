import express, { type Request, type Response } from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { metricsPage } from '../../../api/operations/metrics-route.js';
import { serve } from '../../support/serve.js';

let scrapes = 0;
let fails = false;
const app = express();
const scrape = async () => {
  if (fails) throw new Error('cannot be read');
  return { contentType: 'text/plain', text: `scrape ${++scrapes}` };
};
const page = metricsPage({ scrape });
app.get('/metrics', page);
const server = await serve(app);
afterAll(() => server.close());

/** Asks in this very moment, which a request over the network does not. */
const ask = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const response = { set: () => response, send: resolve };
    void page({} as Request, response as unknown as Response, reject);
  });
const read = async () => (await fetch(`${server.url}/metrics`)).text();

describe('metricsPage', () => {
  it('makes its text once a second at most, and shares it among those who ask meanwhile', async () => {
    expect(await read()).toBe('scrape 1');
    const startedAt = performance.now();
    const texts = await Promise.all(Array.from({ length: 20 }, ask));
    expect(new Set(texts)).toEqual(new Set(['scrape 2']));
    expect(await read()).toBe('scrape 3');
    // What is tested is time: two seconds, less what timers may be early.
    expect(performance.now() - startedAt).toBeGreaterThan(1900);
  });

  it('continues after a scrape that failed', async () => {
    fails = true;
    expect((await fetch(`${server.url}/metrics`)).status).toBe(500);
    fails = false;
    expect(await read()).toBe('scrape 4');
  });
});
