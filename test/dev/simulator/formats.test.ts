import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { providerIds } from '../../../shared/contract.js';
import { send, validRequest, waysToAsk } from './requests.js';
import { sdkAsks } from './sdk-clients.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

const conversation = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hello 👋' },
  { role: 'assistant', content: 'Hi!' },
  { role: 'user', content: 'Go on' },
];
const finishes: Record<string, string[]> = {
  openai: ['stop', 'length', 'content_filter', 'content_filter', 'stop'],
  anthropic: ['end_turn', 'max_tokens', 'refusal', 'refusal', 'refusal'],
  bedrock: ['end_turn', 'max_tokens', 'guardrail_intervened', 'content_filtered', 'content_filtered'],
  vertexai: ['STOP', 'MAX_TOKENS', 'SAFETY', 'SAFETY', 'PROHIBITED_CONTENT'],
};
const finishModels = ['sim-echo', 'sim-length', 'sim-blocked', 'sim-blocked-reply', 'sim-refused'];

describe.each(Object.keys(sdkAsks) as (keyof typeof sdkAsks)[])('the %s SDK', (name) => {
  const provider = name === 'vertexai express' ? 'vertexai' : name;
  const echo = `Simulated ${provider} reply (no model was called). I read 4 turns, 25 characters: [system] Be brief. | [user] Hello 👋 | [assistant] Hi! | [user] Go on`;

  it.each([false, true])('reads a reply that shows the whole conversation (stream: %s)', async (stream) => {
    const reply = await sdkAsks[name](simulator.url, 'sim-echo', stream);
    expect(reply.pieces.join('')).toBe(echo);
    expect(reply.pieces.length > 3).toBe(stream);
    expect(reply.inputTokens).toBe(7);
    const call = simulator.calls.list().at(-1);
    expect(call).toMatchObject({ provider, model: 'sim-echo', turns: conversation, status: 200 });
    expect(call?.facts).toMatchObject({ hasCredentials: true, stream, method: 'POST' });
  });

  it.each([false, true])('reads why a reply ended (stream: %s)', async (stream) => {
    const replies = await Promise.all(
      finishModels.map((model) => sdkAsks[name](simulator.url, model, stream)),
    );
    expect(replies.map(({ finish }) => finish)).toEqual(finishes[provider]);
    const length = replies[1]?.pieces.join('') ?? '';
    expect(echo.startsWith(length) && length.length < echo.length).toBe(true);
    expect(replies[3]?.pieces.join('')).toBe(length);
  });

  it.each(['sim-empty', 'sim-null'])('finds nothing usable in %s', async (model) => {
    for (const stream of [false, true]) {
      const reply = await sdkAsks[name](simulator.url, model, stream);
      expect(reply.pieces.join('')).toBe('');
    }
  });

  it('throws for every error status', async () => {
    for (const status of [400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529]) {
      const asking = sdkAsks[name](simulator.url, `sim-status-${status}`, status % 2 === 0);
      const error = await asking.catch(
        (reason: { status?: number; $metadata?: { httpStatusCode: number } }) => reason,
      );
      expect(error).toBeInstanceOf(Error);
      if ('pieces' in error) continue;
      expect(error.status ?? error.$metadata?.httpStatusCode).toBe(status);
    }
  });

  it('throws in the middle of a stream that breaks off with an error', async () => {
    await expect(sdkAsks[name](simulator.url, 'sim-stream-error', true)).rejects.toThrow();
    await expect(sdkAsks[name](simulator.url, 'sim-stream-error', false)).rejects.toThrow();
  });

  it('sees numbered deltas', async () => {
    const reply = await sdkAsks[name](simulator.url, 'sim-stream-12-0', true);
    expect(reply.pieces).toEqual(['1', ...Array.from({ length: 11 }, (_, index) => ` ${index + 2}`)]);
  });
});

describe('sim-verbatim', () => {
  it.each(waysToAsk)(
    'gives %s back its text unharmed, however large (stream: %s)',
    async (provider, stream) => {
      const text = '👩‍🚀 “ünïcode”\n\u0000 '.repeat(60_000);
      const ask = validRequest(provider, { model: 'sim-verbatim', text, stream });
      const response = await send(simulator.url, ask);
      expect(response.status).toBe(200);
      const raw = Buffer.from(await response.arrayBuffer());
      expect(textOf(raw, response.headers.get('content-type') ?? '')).toBe(text);
    },
  );
});

describe('requests of the largest size', () => {
  it.each(providerIds)('are accepted for %s', async (provider) => {
    const text = 'x'.repeat(8 * 1024 * 1024);
    const response = await send(simulator.url, validRequest(provider, { text }));
    expect(response.status).toBe(200);
    expect(await response.text()).toContain(`${'x'.repeat(500)}…`);
  });

  it.each(providerIds)('are refused beyond 32 MiB for %s', async (provider) => {
    const text = 'x'.repeat(33 * 1024 * 1024);
    const response = await send(simulator.url, validRequest(provider, { text }));
    expect(response.status).toBe(413);
    await response.text();
  });
});

interface Wire {
  choices?: { message?: { content: string }; delta?: { content?: string } }[];
  content?: { text: string }[];
  delta?: { text?: string };
  output?: { message: { content: { text: string }[] } };
  candidates?: { content: { parts: { text: string }[] } }[];
}

/** The text in a raw answer of any provider, read without its SDK so that size is the only thing under test. */
function textOf(raw: Buffer, type: string): string {
  if (type.startsWith('text/event-stream')) {
    const data = raw
      .toString()
      .split('\n')
      .filter((line) => line.startsWith('data: {'));
    return data.map((line) => textIn(JSON.parse(line.slice(6)) as Wire)).join('');
  }
  if (type === 'application/vnd.amazon.eventstream') return eventPayloads(raw).map(textIn).join('');
  return textIn(JSON.parse(raw.toString()) as Wire);
}

function textIn({ choices, content, delta, output, candidates }: Wire): string {
  return (
    choices?.[0]?.message?.content ??
    choices?.[0]?.delta?.content ??
    content?.[0]?.text ??
    delta?.text ??
    output?.message.content[0]?.text ??
    candidates?.[0]?.content.parts[0]?.text ??
    ''
  );
}

function eventPayloads(raw: Buffer): Wire[] {
  const payloads: Wire[] = [];
  for (let start = 0; start < raw.length; start += raw.readUInt32BE(start)) {
    const end = start + raw.readUInt32BE(start) - 4;
    payloads.push(JSON.parse(raw.toString('utf8', start + 12 + raw.readUInt32BE(start + 4), end)) as Wire);
  }
  return payloads;
}
