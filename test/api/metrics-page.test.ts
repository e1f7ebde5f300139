import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { metricsPage } from '../../api/metrics-page.js';
import { serve } from '../support/serve.js';

let scrapes = 0;
let fails = false;
const app = express();
const scrape = async () => {
  if (fails) throw new Error('cannot be read');
  return { contentType: 'text/plain', text: `scrape ${++scrapes}` };
};
app.get('/metrics', metricsPage({ scrape }));
const server = await serve(app);
afterAll(() => server.close());

const read = async () => (await fetch(`${server.url}/metrics`)).text();

describe('metricsPage', () => {
  it('makes its text once a second at most, and for nobody from before they asked', async () => {
    expect(await read()).toBe('scrape 1');
    const startedAt = performance.now();
    const texts = await Promise.all(Array.from({ length: 20 }, read));
    expect(new Set(texts)).toEqual(new Set(['scrape 2']));
    expect(await read()).toBe('scrape 3');
    // What is tested is time: two seconds, less what timers may be early.
    expect(performance.now() - startedAt).toBeGreaterThan(1900);
  });

  it('goes on after a scrape that failed', async () => {
    fails = true;
    expect((await fetch(`${server.url}/metrics`)).status).toBe(500);
    fails = false;
    expect(await read()).toBe('scrape 4');
  });
});
