import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Chat } from '../../shared/contract.js';
import { buildOlderRelease } from '../compatibility/older-release.js';
import { authorization, type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { askWithTools, callsIn, weatherTool } from '../support/tool-completions.js';

// The programs of this checkout beside those of the release before it, on the schema of this one. OpenAI has an older
// worker alone, Anthropic a newer one alone, and Vertex AI one of each.

const older = await buildOlderRelease();

const mixtures = [
  { asked: 'newer', answering: 'older', provider: 'openai' },
  { asked: 'older', answering: 'newer', provider: 'anthropic' },
] as const;

let deployment: Deployment;
let apis: Record<'older' | 'newer', Pick<StartedApi, 'url' | 'chat'>>;

const eventually = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, patience);
const callOf = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const later = { Prefer: 'respond-async' };

const keptChat = ({ url }: { url: string }, id: unknown, method = 'GET'): Promise<Response> =>
  fetch(`${url}/chat/${id}`, { method, headers: { Authorization: authorization } });

const untilStatus = (api: { url: string }, id: unknown, status: Chat['status']): Promise<Chat> =>
  eventually(async () => {
    const chat = (await (await keptChat(api, id)).json()) as Chat;
    expect(chat.status).toBe(status);
    return chat;
  });

/** Asks until the API itself refuses; before it has heard that the pool would, a request waits in vain. */
const untilRefused = (api: Pick<StartedApi, 'chat'>, provider: string): Promise<void> =>
  eventually(async () => {
    const asked = { provider, model: 'sim-retry-after-3600', headers: { Prefer: 'wait=1' } };
    expect((await api.chat(asked)).body.code).toBe('provider_rate_limited');
  });

describe('two releases at once', () => {
  if (older.missing !== undefined) return it.skip(`(did not run: ${older.missing})`);
  const { launcher } = older;
  beforeAll(async () => {
    deployment = await startDeployment({ workers: 0 });
    const [olderApi] = await Promise.all([
      deployment.startApi({}, launcher),
      deployment.startWorker({ WORKER_PROVIDERS: 'openai,vertexai' }, launcher),
      deployment.startWorker({ WORKER_PROVIDERS: 'anthropic,vertexai' }),
    ]);
    apis = { older: olderApi, newer: deployment };
  });
  afterAll(() => deployment?.stop());

  it.each(mixtures)(
    '$asked API, $answering worker -> chat, keep, stream, cancel and hold back',
    async (mixture) => {
      const { asked, provider } = mixture;
      const api = apis[asked];
      const other = apis[asked === 'older' ? 'newer' : 'older'];
      const models = ['sim-echo', 'sim-length', 'sim-blocked', 'sim-status-400'];
      const replies = await Promise.all(models.map((model) => api.chat({ provider, model })));
      expect(replies.map(({ status, body }) => [status, body.code])).toEqual([
        ...[
          [200, undefined],
          [200, undefined],
          [500, 'content_blocked'],
          [500, 'provider_rejected'],
        ],
      ]);
      expect(replies[1]?.headers.get('x-llm-finish-reason')).toBe('length');

      const kept = await api.chat({ provider, headers: later });
      const here = await untilStatus(api, kept.body.id, 'completed');
      expect(await untilStatus(other, kept.body.id, 'completed')).toEqual(here);

      const model = `sim-gate-10@joined-${provider}`;
      const keyed = { provider, model, headers: { 'Idempotency-Key': `upgrade-${provider}` } };
      const first = apis.older.chat(keyed);
      await callOf(model);
      const stream = openStream({ url: apis.newer.url, ...keyed });
      deployment.simulator.open(model);
      const { body, status } = await first;
      const { text, end } = await readStream(await stream);
      const replayed = await other.chat(keyed);
      expect([status, end?.event, replayed.headers.get('idempotency-replayed')]).toEqual([
        200,
        'done',
        'true',
      ]);
      expect(new Set([text, body.response, replayed.body.response]).size).toBe(1);
      expect(deployment.simulator.calls.list({ model })).toHaveLength(1);

      const going = new AbortController();
      const left = api.chat({ provider, model: `sim-hang@left-${provider}`, signal: going.signal });
      const call = await callOf(`sim-hang@left-${provider}`);
      going.abort();
      await left.catch(() => undefined);
      await call.closed;
      const taken = await api.chat({ provider, model: `sim-hang@taken-${provider}`, headers: later });
      const running = await callOf(`sim-hang@taken-${provider}`);
      expect((await keptChat(other, taken.body.id, 'DELETE')).status).toBe(204);
      await running.closed;
      for (const one of [api, other]) await untilStatus(one, taken.body.id, 'cancelled');

      const { body: refused } = await api.chat({ provider, model: 'sim-retry-after-3600' });
      expect(refused.code).toBe('provider_rate_limited');
      await untilRefused(api, provider);
    },
  );

  it('a chat with tools -> is left to the newer worker, and unread by the older API', async () => {
    const vertex = Array.from({ length: 8 }, () =>
      askWithTools(apis.newer, { model: 'vertexai/sim-tools', tools: [weatherTool], stream: true }),
    );
    for (const reply of await Promise.all(vertex)) {
      expect(reply).toMatchObject({ status: 200, finish: 'tool_calls' });
      expect(callsIn(reply).map(([name]) => name)).toEqual(['weather']);
    }
    const alone = { model: 'openai/sim-tools@older-alone', tools: [weatherTool] };
    const { error } = await askWithTools(apis.newer, alone, { headers: { Prefer: 'wait=2' } });
    expect(error?.code).toBe('timeout');
    expect(deployment.simulator.calls.list({ model: 'sim-tools@older-alone' })).toEqual([]);

    const asked = { model: 'anthropic/sim-tool-gate-9@tools', tools: [weatherTool], stream: true };
    const calling = askWithTools(apis.newer, asked, { headers: { 'Idempotency-Key': 'upgrade-tools' } });
    await callOf('sim-tool-gate-9@tools');
    const text = await readStream(await openStream({ url: apis.older.url, provider: 'anthropic' }));
    expect(text.end).toMatchObject({ event: 'done', data: { response: text.text } });
    deployment.simulator.open('sim-tool-gate-9@tools');
    const called = await calling;
    expect(called.finish).toBe('tool_calls');
    const id = called.headers.get('content-location')?.split('/').at(-1);
    const unread = await keptChat(apis.older, id);
    expect(unread.status).toBe(500);
    expect(await unread.json()).toMatchObject({ code: 'internal', retryable: true });
    expect(await (await keptChat(apis.newer, id)).json()).toMatchObject({
      completion: { choices: [{ message: { tool_calls: called.calls } }] },
    });
  });
});
