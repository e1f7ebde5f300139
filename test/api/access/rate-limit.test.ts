import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { limitAnonymousReads } from '../../../api/access/rate-limit.js';
import { problemHandler } from '../../../api/http/problem.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

const app = express().set('trust proxy', 'loopback');
app.use('/limited', limitAnonymousReads({ perSecond: 2 }));
app.use('/open', limitAnonymousReads({ perSecond: 0 }));
app.use((_request, response) => void response.send('read'));
app.use(problemHandler(createRecordingLog().log));
const server = await serve(app);
afterAll(() => server.close());

const ask = (address: string, init: { path?: string; method?: string; authorization?: string } = {}) =>
  fetch(server.url + (init.path ?? '/limited'), {
    method: init.method ?? 'GET',
    headers: { 'X-Forwarded-For': address, ...(init.authorization && { Authorization: init.authorization }) },
  });

async function statusesOf(count: number, ...call: Parameters<typeof ask>): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => ask(...call)));
  return answers.map(({ status }) => status).sort();
}

describe('limitAnonymousReads', () => {
  it('allows this many in ten seconds, and then says how long to wait', async () => {
    expect(await statusesOf(19, '192.0.2.1')).toEqual(Array(19).fill(200));
    expect((await ask('192.0.2.1', { method: 'HEAD' })).status).toBe(200);
    const refused = await ask('192.0.2.1');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ code: 'rate_limited' });
    const wait = Number(refused.headers.get('retry-after'));
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(10);
    expect((await ask('192.0.2.2')).status).toBe(200);
  });

  it('counts neither writes nor requests with credentials', async () => {
    expect(await statusesOf(21, '192.0.2.3', { authorization: 'Bearer x' })).toEqual(Array(21).fill(200));
    expect(await statusesOf(21, '192.0.2.3', { method: 'POST' })).toEqual(Array(21).fill(200));
    expect((await ask('192.0.2.3')).status).toBe(200);
  });

  it('counts nothing when any number is allowed', async () => {
    expect(await statusesOf(50, '192.0.2.4', { path: '/open' })).toEqual(Array(50).fill(200));
  });
});
