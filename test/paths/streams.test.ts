import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { openStream, readStream, type StreamCall } from '../support/event-streams.js';

let deployment: Deployment;
let other: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({});
  other = await deployment.startApi();
});
afterAll(() => deployment.stop());

const stream = (call: Partial<StreamCall>) => openStream({ url: deployment.url, ...call });
const calls = (model: string) => deployment.simulator.calls.list({ model }).length;

describe.each(providerIds)('a stream of %s', (provider) => {
  it('brings the reply in order as it is written, and then the whole', async () => {
    const model = `sim-stream-40-5@${provider}`;
    const { response, text, deltas, end } = await readStream(await stream({ provider, model }));
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('x-llm-provider')).toBe(provider);
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(deltas.length).toBeGreaterThan(2);
    expect(end).toMatchObject({
      event: 'done',
      data: {
        response: text,
        finishReason: 'stop',
        provider,
        model,
        usage: { inputTokens: expect.any(Number) },
      },
    });
    expect(text).toContain('40');
    const offsets = deltas.map(({ id }) => Number(id?.split('.')[1]));
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    expect(offsets.at(-1)).toBe(text.length);
  });
});

describe('a stream', () => {
  it('of a stored chat is read at its address, while it runs and afterwards', async () => {
    const model = `sim-stream-30-20@${randomUUID()}`;
    const headers = { 'Idempotency-Key': randomUUID() };
    const writing = await stream({ model, headers });
    const chatId = writing.response.headers.get('content-location')?.split('/').at(-1) ?? '';
    const joined = readStream(await openStream({ url: other.url, chatId }));
    const first = await readStream(writing);
    expect((await joined).text).toBe(first.text);
    const replayed = await readStream(await openStream({ url: other.url, chatId }));
    expect(replayed.text).toBe(first.text);
    const [middle] = first.deltas;
    const again = await readStream(
      await stream({ model, headers: { ...headers, 'Last-Event-ID': middle?.id ?? '' } }),
    );
    expect(again.response.headers.get('idempotency-replayed')).toBe('true');
    expect(`${middle?.data.delta}${again.text}`).toBe(first.text);
    expect(calls(model)).toBe(1);
  });
});
