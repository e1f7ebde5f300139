import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { PoolJobPage } from '../../shared/fleet-contract.js';
import type { RecentRequests, Samples } from '../../shared/history.js';
import { createToken, type TestToken } from '../support/accounts.js';
import { promptCanary } from '../support/canaries.js';
import { type Deployment, type StartedApi, startDeployment, username } from '../support/deployment.js';
import { readEvents } from '../support/event-streams.js';
import { patience } from '../support/patience.js';

let deployment: Deployment;
let other: StartedApi;
let operator: TestToken;
beforeAll(async () => {
  deployment = await startDeployment({ workers: 1 });
  other = await deployment.startApi();
  operator = await createToken(deployment);
});
afterAll(() => deployment?.stop());

/** At the process that has done none of the chats. */
const ask = (path: string) => operator.ask(path, other.url);
const requests = async (query = '') =>
  (await (await ask(`/admin/requests${query}`)).json()) as RecentRequests;

describe('the recent past', () => {
  it('of one API process is seen at the other: chats, as they end, measurements, and jobs, without a text', async () => {
    const events = readEvents(await ask('/admin/events?include=requests,samples'));
    expect((await events.next()).value?.event).toBe('snapshot');
    const messages = [{ content: promptCanary }];
    const headers = { 'X-LLM-Fallback': 'none' };
    const answers = [
      await deployment.chat({ model: 'sim-echo', messages, headers }),
      await deployment.chat({ model: 'sim-status-400', messages, headers }),
    ];
    const seen: unknown[] = [];
    for (const wanted of ['request', 'sample'])
      for (;;) {
        const { value } = await events.next();
        seen.push(value);
        if (value?.event === wanted) break;
      }
    await events.return(undefined);
    await vi.waitFor(async () => {
      const { processes, isPartial, requests: list } = await requests('?provider=openai');
      expect([processes, isPartial]).toEqual([2, false]);
      expect(list.map(({ code }) => code)).toEqual(['provider_rejected', 'ok']);
      expect(list[1]).toMatchObject({
        ...{ user: username, provider: 'openai', streamed: false, attempts: [{ code: 'ok' }] },
        ...{ queuedMs: expect.any(Number), startedMs: expect.any(Number), endedMs: expect.any(Number) },
      });
      expect(list[0]?.attempts).toMatchObject([{ providerError: { status: 400, type: expect.any(String) } }]);
      expect((await requests(`?id=${list[1]?.id}`)).requests).toEqual([list[1]]);
      seen.push(list);
    }, patience);
    await vi.waitFor(async () => {
      const { samples } = (await (await ask('/admin/samples?provider=openai')).json()) as Samples;
      const ended = samples.reduce((sum, sample) => sum + sample.ended, 0);
      expect(ended).toBe(2);
      expect(samples.at(-1)).toMatchObject({ waiting: 0, concurrency: expect.any(Number) });
      seen.push(samples);
    }, patience);
    const jobs = (await (await ask('/admin/pools/openai/jobs?state=completed')).json()) as PoolJobPage;
    expect(jobs.data.map(({ id, attempts }) => [id, attempts]).reverse()).toEqual(
      answers.map(({ headers: sent }) => [sent.get('x-request-id'), 1]),
    );
    seen.push(jobs);
    expect(JSON.stringify(seen)).not.toContain('canary');
  });
});
