import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { type OpenStream, openStream, readStream, type StreamCall } from '../support/event-streams.js';
import { patience } from '../support/patience.js';

let deployment: Deployment;
let other: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({ store: inject('store') });
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
  it('goes on at another API process, byte for byte, with one call', async () => {
    const model = `sim-stream-60-20@${randomUUID()}`;
    const headers = { 'Idempotency-Key': randomUUID() };
    const leaving = new AbortController();
    const first = await readStream(
      await stream({ model, headers, signal: leaving.signal }),
      (text) => text.length > 20,
    );
    leaving.abort();
    const rest = await readStream(
      await openStream({
        url: other.url,
        model,
        headers: { ...headers, 'Last-Event-ID': first.lastEventId ?? '' },
      }),
    );
    expect(first.text + rest.text).toBe(rest.end?.data.response);
    expect(rest.text.length).toBeGreaterThan(0);
    expect(calls(model)).toBe(1);
  });

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

  it('of stored chats has 20 readers of a user at an API process (finding S7)', async () => {
    const model = `sim-latency-5000@${randomUUID()}`;
    const accepted = await deployment.chat({ model, headers: { Prefer: 'respond-async' } });
    const leaving = new AbortController();
    const call = { url: other.url, chatId: String(accepted.body.id), signal: leaving.signal };
    const refused: OpenStream[] = [];
    const reading = Array.from({ length: 25 }, () => openStream(call).then((asked) => refused.push(asked)));
    await vi.waitFor(() => expect(refused).toHaveLength(5), patience);
    for (const { response } of refused) {
      expect(response.status).toBe(429);
      expect(await response.json()).toMatchObject({ code: 'rate_limited' });
    }
    leaving.abort();
    await Promise.allSettled(reading);
    await vi.waitFor(async () => {
      const again = await openStream({ url: other.url, chatId: call.chatId });
      expect(again.response.status).toBe(200);
      expect((await readStream(again)).end?.event).toBe('done');
    }, patience);
  });

  it('never continues the text of another call', async () => {
    const { response, end } = await readStream(
      await stream({ headers: { 'Idempotency-Key': randomUUID(), 'Last-Event-ID': 'another.5' } }),
    );
    expect(response.status).toBe(200);
    expect(end).toMatchObject({ event: 'error', data: { code: 'internal', retryable: true } });
  });
});
