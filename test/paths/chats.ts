import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contracts/contract.js';
import type { Deployment, StartedApi } from '../support/deployment.js';
import { openStream, readStream, type StreamCall } from '../support/event-streams.js';

/** Chats and streams of a deployment with two API processes, wherever its queue lives. */
export function describeChats(running: () => { deployment: Deployment; other: StartedApi }): void {
  describe.each(providerIds)('a chat with %s', (provider) => {
    it('is answered → the reply is the one field, and the facts are headers', async () => {
      const { status, headers, body } = await running().deployment.chat({ provider });
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual(['response']);
      expect(body.response).toMatch(new RegExp(`Simulated ${provider} reply .* Hello`));
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-type': expect.stringMatching(/^application\/json/),
        'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
        'x-llm-provider': provider,
        'x-llm-model': 'sim-echo',
        'x-llm-finish-reason': 'stop',
        'x-llm-input-tokens': expect.stringMatching(/^[1-9]\d*$/),
        'x-llm-output-tokens': expect.stringMatching(/^[1-9]\d*$/),
        'server-timing': expect.stringMatching(/^queue;dur=\d+, provider;dur=\d+$/),
      });
    });

    it('has a text of half a megabyte → it goes there and comes back byte for byte', async () => {
      const content = '€ß漢🦉 '.repeat(25_000);
      const call = { provider, model: 'sim-verbatim', messages: [{ content }] };
      const { status, body } = await running().deployment.chat(call);
      expect(status).toBe(200);
      expect(body.response).toBe(content);
    });

    it('is streamed → what is written comes while the call goes on, in order, and then the whole', async () => {
      const { url, simulator } = running().deployment;
      const model = `sim-gate-3@${provider}`;
      const opened = await openStream({ url, provider, model });
      const written = await readStream(opened, (text) => text.includes('3'));
      expect(simulator.calls.list({ model })).toMatchObject([{ ended: undefined }]);
      simulator.open(model);
      const rest = await readStream(opened);
      const { response } = rest;
      expect(response.status).toBe(200);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'text/event-stream; charset=utf-8',
        'x-llm-provider': provider,
        'x-accel-buffering': 'no',
      });
      const text = written.text + rest.text;
      expect(text.trim()).toBe('1 2 3 4 5 6');
      const usage = { inputTokens: expect.any(Number) };
      const whole = { response: text, finishReason: 'stop', provider, model, usage };
      expect(rest.end).toMatchObject({ event: 'done', data: whole });
      const offsets = [...written.deltas, ...rest.deltas].map(({ id }) => Number(id?.split('.')[1]));
      expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
      expect(offsets.at(-1)).toBe(text.length);
    });
  });

  describe('a hundred chats at once', () => {
    it('→ each has its own reply', async () => {
      const asked = Array.from({ length: 100 }, (_, index) => `Question ${index}`);
      const ask = (content: string) =>
        running().deployment.chat({ model: 'sim-verbatim', messages: [{ content }] });
      const replies = await Promise.all(asked.map(ask));
      expect(replies.map(({ body }) => body.response)).toEqual(asked);
    });
  });

  describe('the stream of a stored chat', () => {
    it('is joined, read afterwards and continued → each time the rest of the same reply, of one call', async () => {
      const { deployment, other } = running();
      const model = `sim-gate-3@${randomUUID()}`;
      const headers = { 'Idempotency-Key': randomUUID() };
      const stream = (call: Partial<StreamCall>) => openStream({ url: deployment.url, model, ...call });
      const writing = await stream({ headers });
      const chatId = writing.response.headers.get('content-location')?.split('/').at(-1) ?? '';
      const [begun, joined] = [
        await readStream(writing, (text) => text !== ''),
        await openStream({ url: other.url, chatId }),
      ];
      deployment.simulator.open(model);
      const text = begun.text + (await readStream(writing)).text;
      expect(text.trim()).toBe('1 2 3 4 5 6');
      expect((await readStream(joined)).text).toBe(text);
      expect((await readStream(await openStream({ url: other.url, chatId }))).text).toBe(text);
      const lastEventId = { 'Last-Event-ID': begun.lastEventId ?? '' };
      const again = await readStream(await stream({ headers: { ...headers, ...lastEventId } }));
      expect(again.response.headers.get('idempotency-replayed')).toBe('true');
      expect(begun.text + again.text).toBe(text);
      expect(deployment.simulator.calls.list({ model })).toHaveLength(1);
    });
  });
}
