import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
afterEach(() => deployment.stop());

const start = async (variables: Record<string, string> = {}, workers = 1): Promise<Deployment> => {
  deployment = await startDeployment({
    store: inject('store'),
    workers,
    variables: {
      WORKER_LOCK_MS: '3000',
      WORKER_STALLED_CHECK_MS: '1000',
      CHAT_TIMEOUT_MS: '6000',
      ...variables,
    },
  });
  return deployment;
};

const kill = async (child: { pid: number; exitCode: Promise<unknown> }, signal: NodeJS.Signals) => {
  process.kill(child.pid, signal);
  return child.exitCode;
};

const codeOf = ({ status, body }: ChatReply) => ({ status, code: body.code });

describe('the API', () => {
  it('stops at once when nothing is in flight, whoever is connected', async () => {
    const { api } = await start();
    const silent = connect(api.port, '127.0.0.1');
    await once(silent, 'connect');
    const startedAt = performance.now();
    expect(await kill(api, 'SIGTERM')).toBe(0);
    // And not when the grace of thirty seconds is over.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  });

  it('refuses at once what the backlog would keep waiting past its deadline', async () => {
    const { chat, simulator } = await start({ OPENAI_CONCURRENCY: '1', CHAT_TIMEOUT_MS: '2000' });
    const slow = { model: 'sim-latency-900' };
    // Until a heartbeat has told of it, the API does not know how long such a job takes.
    let asked = 0;
    const refused: ChatReply[] = [];
    // Before that the worker refuses those that come too late.
    while (!refused.some(({ tookMs }) => tookMs < 500)) {
      const replies = await Promise.all(Array.from({ length: 5 }, () => chat(slow)));
      refused.push(...replies.filter(({ body }) => body.code === 'overloaded'));
      asked += replies.length;
    }
    for (const { status, headers } of refused) {
      expect(status).toBe(500);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect(simulator.calls.list(slow).length).toBeLessThanOrEqual(asked - refused.length);
  });

  it('refuses at once a provider that no worker serves, and serves the others', async () => {
    const { chat } = await start({ WORKER_PROVIDERS: 'openai,anthropic', CHAT_TIMEOUT_MS: '4500' });
    await chat({ provider: 'vertexai' });
    const reply = await chat({ provider: 'vertexai' });
    expect(codeOf(reply)).toEqual({ status: 500, code: 'provider_unavailable' });
    // And not at the deadline.
    expect(reply.tookMs).toBeLessThan(3000);
    expect((await chat({ provider: 'anthropic' })).status).toBe(200);
  });

  it('asks for a model when the provider has no default one, whether its pool has told so or not', async () => {
    const { chat } = await start({ OPENAI_MODEL: '' });
    const replies = [await chat({}), await chat({ model: 'sim-latency-1200' }), await chat({})];
    expect(replies.map(({ status }) => status)).toEqual([400, 200, 400]);
    for (const { body } of [replies[0], replies[2]].flatMap((reply) => reply ?? [])) {
      expect(body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'X-LLM-Model' }] });
    }
  });

  it('lets callers name the models that are listed, and the default one', async () => {
    const models = 'sim-lat*-50,sim-verbatim';
    const { chat, simulator } = await start({ OPENAI_MODELS: models, OPENAI_MODEL: 'sim-stream-2-0' });
    const asked = ['sim-echo', 'sim-latency-50', 'sim-stream-2-0', 'sim-latency-51', 'sim-verbatim'];
    const replies = [];
    for (const model of asked) replies.push(await chat({ model }));
    expect(replies.map(({ status }) => status)).toEqual([400, 200, 200, 400, 200]);
    expect(replies[0]?.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'X-LLM-Model' }] });
    expect(JSON.stringify(replies[3]?.body)).not.toContain('sim-latency-51');
    expect(simulator.calls.list()).toHaveLength(3);
    expect((await chat({ provider: 'anthropic', model: 'sim-latency-51' })).status).toBe(200);
  });
});

describe('a breaker', () => {
  it('stays closed for refusals and empty answers', async () => {
    const { chat } = await start();
    for (const model of ['sim-status-400', 'sim-empty', 'sim-blocked']) {
      await Promise.all(Array.from({ length: 30 }, () => chat({ model })));
    }
    expect(deployment.logs()).not.toContain('breaker changed');
    expect((await chat({})).status).toBe(200);
  });
});
