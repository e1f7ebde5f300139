import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviourList, findBehaviour } from '../../../dev/simulator/behaviours.js';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { send, validRequest, waysToAsk } from './requests.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

// Aborts what a test left hanging, so that no connection outlives it.
let left = new AbortController();
afterEach(() => {
  left.abort();
  left = new AbortController();
});

const open = (provider: ProviderId, model: string, stream: boolean) =>
  send(simulator.url, validRequest(provider, { model, stream }), left.signal);

async function ask(provider: ProviderId, model: string, stream = false) {
  const response = await open(provider, model, stream);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('findBehaviour', () => {
  it('knows every model it lists', () => {
    const values: Record<string, string> = {
      ...{ status: '503', key: 'a.b-c', n: '2', ms: '30', seconds: '4', length: '9' },
    };
    for (const { model } of behaviourList) {
      const name = model.replace(/<(\w+)>/g, (_, word: string) => values[word] ?? '');
      expect(findBehaviour(name), name).toBeDefined();
      expect(findBehaviour(`${name}@some test`), name).toEqual(findBehaviour(name));
    }
  });
});

describe('errors', () => {
  it.each(providerIds)('carry Retry-After where %s was asked for it', async (provider) => {
    const limited = await ask(provider, 'sim-retry-after-7');
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '7']);
    const plain = await ask(provider, 'sim-status-429');
    expect([plain.status, plain.headers.get('retry-after')]).toEqual([429, null]);
  });

  it.each(providerIds)('stop after the first calls of %s, counted per model', async (provider) => {
    const statuses = async (model: string, times: number) => {
      const seen: number[] = [];
      while (seen.length < times) seen.push((await ask(provider, model)).status);
      return seen;
    };
    expect(await statuses('sim-fail-2-503', 4)).toEqual([503, 503, 200, 200]);
    expect(await statuses('sim-fail-2-503-other', 3)).toEqual([503, 503, 200]);
    expect(await statuses('sim-fail-0-500', 1)).toEqual([200]);
    expect(await statuses('sim-good-2-503-key', 5)).toEqual([200, 200, 503, 503, 503]);
    expect(await statuses('sim-hang-0-key', 1)).toEqual([200]);
    const limited = await ask(provider, 'sim-limit-1-3-key');
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '3']);
    expect((await ask(provider, 'sim-limit-1-3-key')).status).toBe(200);
  });
});

describe('time', () => {
  it.each(waysToAsk)('passes before %s answers sim-latency (stream: %s)', async (provider, stream) => {
    const start = performance.now();
    const { text } = await ask(provider, 'sim-latency-60', stream);
    expect(performance.now() - start).toBeGreaterThan(55);
    expect(text.length).toBeGreaterThan(0);
  });

  it.each(providerIds)('passes between the deltas of %s', async (provider) => {
    const start = performance.now();
    await ask(provider, 'sim-stream-4-20', true);
    expect(performance.now() - start).toBeGreaterThan(55);
  });

  it.each(waysToAsk)('passes between the bytes %s drips (stream: %s)', async (provider, stream) => {
    // Far enough apart that a busy machine does not deliver two at once.
    const { body } = await open(provider, 'sim-drip-250', stream);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    const second = await reader.read();
    expect([first.value?.length, second.value?.length]).toEqual([1, 1]);
  });
});

describe('a stream that goes wrong', () => {
  it.each(providerIds)('is silent after the deltas that %s was asked for', async (provider) => {
    const { body } = await open(provider, 'sim-stall-2', true);
    const reader = (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes(' 2')) text += (await reader.read()).value;
    const silence = Promise.race([reader.read(), delay(100, 'silence')]);
    expect(await silence).toBe('silence');
    expect(text).not.toContain(' 3');
  });

  it.each(providerIds)('is cut by %s after the deltas it was asked for', async (provider) => {
    await expect(ask(provider, 'sim-cut-2', true)).rejects.toThrow('terminated');
  });

  it.each(waysToAsk)('is a broken body of %s (stream: %s)', async (provider, stream) => {
    const whole = await ask(provider, stream ? 'sim-stream-4-0' : 'sim-echo', stream);
    const { status, text } = await ask(provider, 'sim-unfinished-4', stream);
    expect(status).toBe(200);
    if (stream) expect(text.length).toBeLessThan(whole.text.length);
    else expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  it.each(providerIds)('says at the end how %s has failed', async (provider) => {
    const plain = await ask(provider, 'sim-unfinished-2', true);
    for (const model of ['sim-malformed-2', 'sim-stream-error-2']) {
      const { status, text } = await ask(provider, model, true);
      expect(status).toBe(200);
      expect(text.length).toBeGreaterThan(plain.text.length);
    }
    expect((await ask(provider, 'sim-stream-error-2')).status).toBe(500);
  });
});

describe('the size of a reply', () => {
  it.each(waysToAsk)('is what %s was asked for (stream: %s)', async (provider, stream) => {
    const { text } = await ask(provider, 'sim-deltas-2-70000', stream);
    expect(text).toContain('x'.repeat(stream ? 70_000 : 140_000));
    expect(text).not.toContain('x'.repeat(stream ? 70_001 : 140_001));
  });
});

describe('timestamps', () => {
  it.each(['openai', 'anthropic', 'vertexai'] as const)(
    'say when %s has sent each delta',
    async (provider) => {
      const before = Date.now();
      const { text } = await ask(provider, 'sim-timestamps-3-20', true);
      const times = [...text.matchAll(/\d{13}\.\d{3}/g)].map(([time]) => Number(time));
      expect(new Set(times).size).toBe(3);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      // The clocks of process and system may have drifted apart.
      for (const time of times) expect(Math.abs(time - before)).toBeLessThan(60_000);
    },
  );
});
