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

async function ask(provider: ProviderId, model: string, stream = false) {
  const response = await send(simulator.url, validRequest(provider, { model, stream }), left.signal);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('findBehaviour', () => {
  it('knows every model it lists', () => {
    const values: Record<string, string> = { status: '503', key: 'a.b-c', n: '2', ms: '30', seconds: '4' };
    for (const { model } of behaviourList) {
      const name = model.replace(/<(\w+)>/g, (_, word: string) => values[word] ?? '');
      expect(findBehaviour(name), name).toBeDefined();
      expect(findBehaviour(`${name}@some test`), name).toEqual(findBehaviour(name));
    }
  });

  it('reads the numbers in a name', () => {
    expect(findBehaviour('sim-fail-2-503')).toEqual({ kind: 'error', status: 503, times: 2 });
    expect(findBehaviour('sim-limit-3-7-k')).toEqual({
      kind: 'error',
      status: 429,
      times: 3,
      retryAfterS: 7,
    });
    expect(findBehaviour('sim-stream-5-20')).toMatchObject({ says: 5, gapMs: 20 });
  });
});

describe('errors', () => {
  const shapes: Record<ProviderId, (status: number) => object> = {
    openai: () => ({ error: { message: expect.any(String), type: expect.any(String) } }),
    anthropic: () => ({ type: 'error', error: { type: expect.any(String) } }),
    bedrock: () => ({ message: expect.any(String) }),
    vertexai: (code) => ({ error: { code, status: expect.any(String) } }),
  };

  it.each(waysToAsk)("of any status have %s's shape (stream: %s)", async (provider, stream) => {
    for (const status of [400, 401, 403, 404, 408, 413, 418, 422, 429, 500, 502, 503, 504, 529, 599]) {
      const answer = await ask(provider, `sim-status-${status}`, stream);
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text)).toMatchObject(shapes[provider](status));
    }
  });

  it.each([
    [400, 'ValidationException'],
    [403, 'AccessDeniedException'],
    [404, 'ResourceNotFoundException'],
    [408, 'ModelTimeoutException'],
    [424, 'ModelErrorException'],
    [429, 'ThrottlingException'],
    [500, 'InternalServerException'],
    [503, 'ServiceUnavailableException'],
  ])('of status %d name the exception for bedrock', async (status, exception) => {
    const { headers } = await ask('bedrock', `sim-status-${status}`);
    expect(headers.get('x-amzn-errortype')).toBe(exception);
  });

  it.each([
    ['openai', 503, 'overloaded'],
    ['anthropic', 529, 'overloaded_error'],
    ['bedrock', 429, 'not ready'],
    ['vertexai', 503, 'UNAVAILABLE'],
  ] as const)('of a model that is being loaded are %s %d', async (provider, status, words) => {
    const answer = await ask(provider, 'sim-not-ready');
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(words);
  });

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
    const model = 'sim-drip-250';
    const response = await send(simulator.url, validRequest(provider, { model, stream }), left.signal);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    const second = await reader.read();
    expect([first.value?.length, second.value?.length]).toEqual([1, 1]);
  });

  it('lets a drip end with the valid answer', async () => {
    const { text } = await ask('openai', 'sim-drip-0');
    expect(JSON.parse(text)).toMatchObject({ object: 'chat.completion' });
  });
});

describe('broken connections', () => {
  it.each(waysToAsk)('%s never answers sim-hang (stream: %s)', async (provider, stream) => {
    const model = `sim-hang@${provider}-${stream}`;
    const asking = ask(provider, model, stream).catch((error: Error) => error.name);
    const call = await simulator.waitForCall((seen) => seen.model === model);
    expect(call.status).toBeUndefined();
    left.abort();
    await call.closed;
    expect(call).toMatchObject({ clientClosedFirst: true, finishedAt: undefined });
    expect(await asking).toBe('AbortError');
  });

  it.each(waysToAsk)(
    '%s sends a part, then nothing, for sim-hang-body (stream: %s)',
    async (provider, stream) => {
      const request = validRequest(provider, { model: 'sim-hang-body', stream });
      const response = await send(simulator.url, request, left.signal);
      expect(response.status).toBe(200);
      const { value } = await (response.body as ReadableStream<Uint8Array>).getReader().read();
      expect(value?.length).toBeGreaterThan(20);
      const call = simulator.calls.list().at(-1);
      expect(call).toMatchObject({ status: 200, closedAt: undefined });
      left.abort();
      await call?.closed;
      expect(call?.clientClosedFirst).toBe(true);
    },
  );

  it.each(waysToAsk)('%s resets without an answer for sim-reset (stream: %s)', async (provider, stream) => {
    await expect(ask(provider, 'sim-reset', stream)).rejects.toThrow('fetch failed');
    const call = simulator.calls.list().at(-1);
    await call?.closed;
    expect(call).toMatchObject({ status: undefined, finishedAt: undefined, clientClosedFirst: false });
  });

  it.each(waysToAsk)(
    '%s breaks off within the body for sim-reset-body (stream: %s)',
    async (provider, stream) => {
      const request = validRequest(provider, { model: 'sim-reset-body', stream });
      const response = await send(simulator.url, request, left.signal);
      expect(response.status).toBe(200);
      await expect(response.text()).rejects.toThrow();
      const call = simulator.calls.list().at(-1);
      await call?.closed;
      expect(call).toMatchObject({ status: 200, finishedAt: undefined, clientClosedFirst: false });
    },
  );
});

describe('unusable answers', () => {
  const ends: Record<ProviderId, string> = {
    openai: '[DONE]',
    anthropic: 'message_stop',
    bedrock: 'messageStop',
    vertexai: 'finishReason',
  };

  it.each(providerIds)('of %s are cut in the middle for sim-truncated', async (provider) => {
    const whole = await ask(provider, 'sim-truncated');
    expect(whole.status).toBe(200);
    expect(whole.text.length).toBeGreaterThan(20);
    expect(() => JSON.parse(whole.text)).toThrow();
    const streamed = await ask(provider, 'sim-truncated', true);
    expect(streamed.text.length).toBeGreaterThan(20);
    expect(streamed.text).not.toContain(ends[provider]);
    expect((await ask(provider, 'sim-echo', true)).text).toContain(ends[provider]);
  });

  it.each(waysToAsk)('of %s are a web page for sim-html (stream: %s)', async (provider, stream) => {
    const { status, headers, text } = await ask(provider, 'sim-html', stream);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(text).toMatch(/^<!DOCTYPE html>/);
  });

  it.each(waysToAsk)('of %s have the wrong shape for sim-garbage (stream: %s)', async (provider, stream) => {
    const { status, text } = await ask(provider, 'sim-garbage', stream);
    expect(status).toBe(200);
    expect(text).toContain('unexpected');
    if (!stream) expect(JSON.parse(text)).toEqual({ unexpected: true });
  });

  it.each([
    ['openai', '"choices":[]', '"content":null'],
    ['anthropic', '"content":[]', '"content":[{"type":"text","text":""'],
    ['bedrock', '"content":[]', '"content":[{"text":""}]'],
    ['vertexai', '{"usageMetadata"', '"content":{"role":"model"},"finishReason":"STOP"'],
  ] as const)('of %s are empty for sim-empty and null for sim-null', async (provider, empty, none) => {
    expect((await ask(provider, 'sim-empty')).text).toContain(empty);
    expect((await ask(provider, 'sim-null')).text).toContain(none);
  });

  it.each([
    ['openai', '"finish_reason":"content_filter"', '"refusal":"I'],
    ['anthropic', '"stop_reason":"refusal"', '"stop_reason":"refusal"'],
    ['bedrock', '"stopReason":"guardrail_intervened"', '"stopReason":"content_filtered"'],
    ['vertexai', '"promptFeedback":{"blockReason":"SAFETY"', '"finishReason":"PROHIBITED_CONTENT"'],
  ] as const)(
    'of %s are withheld for sim-blocked and sim-refused (stream or not)',
    async (provider, blocked, refused) => {
      for (const stream of [false, true]) {
        expect((await ask(provider, 'sim-blocked', stream)).text).toContain(blocked);
        expect((await ask(provider, 'sim-refused', stream)).text).toContain(refused);
      }
    },
  );

  it.each([
    ['openai', '"error":{"message"'],
    ['anthropic', 'event: error'],
    ['bedrock', 'modelStreamErrorException'],
    ['vertexai', '"status":"UNAVAILABLE"'],
  ] as const)('of %s carry an error within a stream for sim-stream-error', async (provider, words) => {
    const streamed = await ask(provider, 'sim-stream-error', true);
    expect(streamed.status).toBe(200);
    expect(streamed.text).toContain(words);
    expect(streamed.text).not.toContain(ends[provider]);
    expect((await ask(provider, 'sim-stream-error')).status).toBe(500);
  });
});
