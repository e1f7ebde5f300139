import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { authorization } from '../support/deployment.js';
import { callsIn, type ReadToolCompletion, type ToolCall } from '../support/tool-completions.js';
import { beginWell, expectBreakersClosed } from './support/at-providers.js';
import { fault } from './support/fault.js';
import { footprintOf } from './support/footprint.js';

const whole = { finish: 'tool_calls', error: undefined, content: null };
const weatherCall = [['weather', { city: expect.any(String), unit: 'celsius' }]];

function expectWhole(reply: ReadToolCompletion): void {
  expect(reply).toMatchObject(whole);
  expect(callsIn(reply)).toEqual(weatherCall);
}

fault(
  {
    id: 'X1',
    injected: 'kill -9 of the worker between two pieces of the arguments of a call that is streamed',
    callsPerRequest: 2,
  },
  async (books) => {
    await books.start({ workers: 2, variables: { CHAT_TIMEOUT_MS: '30000' } });
    const asked = books.complete({ model: 'sim-tool-slow-20-150', fields: { stream: true } });
    await asked.begun;
    await books.kill(await books.jobs.workerOf('openai'));
    const { status, error, finish, calls } = await asked.reply;
    expect({ status, code: error?.code, finish: finish ?? null }).toEqual({
      ...{ status: 200, code: 'internal', finish: null },
    });
    expect(() => JSON.parse(calls[0]?.function.arguments ?? '')).toThrow();
    expectWhole(await books.complete({ model: 'sim-tools', fields: { stream: true } }).reply);
    return `error: internal after ${calls[0]?.function.arguments.length} characters of the arguments`;
  },
);

fault(
  {
    id: 'X1',
    injected: 'kill -9 of the worker in the middle of the arguments of a call that is not streamed',
    callsPerRequest: 2,
  },
  async (books) => {
    await books.start({ workers: 2, variables: { CHAT_TIMEOUT_MS: '30000' } });
    const asked = books.complete({ model: 'sim-tool-drip-5' });
    await asked.arrived();
    await books.kill(await books.jobs.workerOf('openai'));
    expectWhole(await asked.reply);
    expect(books.deployment.simulator.calls.list({ model: asked.model })).toHaveLength(2);
    return '200 with the whole call, one more call of the provider';
  },
);

fault(
  {
    id: 'X1',
    injected: 'kill -9 of the worker between two pieces of the arguments of a call that is stored',
    callsPerRequest: 2,
  },
  async (books) => {
    await books.start({ workers: 2, variables: { CHAT_TIMEOUT_MS: '30000' } });
    const stored = {
      model: 'sim-tool-slow-20-150@X1-stored',
      headers: { 'Idempotency-Key': 'X1' },
      fields: { stream: true },
    };
    const first = books.complete(stored);
    await first.begun;
    await books.kill(await books.jobs.workerOf('openai'));
    const broken = await first.reply;
    expect([broken.status, broken.error !== undefined, broken.finish ?? null]).toEqual([200, true, null]);
    const again = await books.complete(stored).reply;
    expectWhole(again);
    const id = again.headers.get('content-location')?.split('/').at(-1);
    const chat = await fetch(`${books.deployment.url}/chat/${id}`, {
      headers: { Authorization: authorization },
    });
    expect(await chat.json()).toMatchObject({
      status: 'completed',
      completion: { choices: [{ finish_reason: 'tool_calls', message: { tool_calls: again.calls } }] },
    });
    expect(books.deployment.simulator.calls.list({ model: first.model })).toHaveLength(2);
    return `the reader of the first call: ${broken.error?.code}; a new one: the second call's, whole`;
  },
);

const assistant = (calls: readonly ToolCall[]) => [
  { role: 'assistant', content: null, tool_calls: calls },
  ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'warm' })),
];
const withoutExtras = (calls: readonly ToolCall[]): ToolCall[] =>
  calls.map(({ extra_content: _, ...call }) => call);
const skipped = 'skip_thought_signature_validator';

fault(
  { id: 'X2', injected: 'a signed history of Gemini falls back to Claude and returns', callsPerRequest: 2 },
  async (books) => {
    await books.start();
    const bodyAt = (model: string) =>
      JSON.stringify(books.deployment.simulator.calls.list({ model }).at(-1)?.body);
    const hello = [{ role: 'user', content: 'Hello' }];
    // Another tool than Claude's: the simulator signs equal calls alike.
    const fields = { tool_choice: { type: 'function', function: { name: 'clock' } } };
    const gemini = await books.complete({ provider: 'vertexai', model: 'sim-tool-signed', fields }).reply;
    const signature = signatureOf(gemini.calls);
    expect(signature).toMatch(/./);

    const target = 'sim-tool-signed@X2-claude';
    const history = [...hello, ...assistant(gemini.calls), { role: 'user', content: 'And now?' }];
    const claude = await books.complete({
      ...{ provider: 'vertexai', model: 'sim-status-500', fields: { messages: history } },
      headers: { 'X-LLM-Fallback': `anthropic/${target}` },
    }).reply;
    expect(claude).toMatchObject(whole);
    expect(bodyAt(target)).not.toContain(signature);
    expect(bodyAt(target)).not.toMatch(/signature|thinking/);
    const thinking: { signature?: string; data?: string }[] = JSON.parse(thinkingOf(claude.calls));
    const signed = thinking.map(({ signature: text, data }) => text ?? data);
    expect(signed).toEqual([expect.any(String), expect.any(String), expect.any(String)]);

    const both = [...history, ...assistant(claude.calls)];
    const ask = async (provider: ProviderId, name: string, messages: object[]) => {
      const model = `sim-echo@X2-${name}`;
      const { status } = await books.complete({ provider, model, fields: { messages } }).reply;
      expect(status).toBe(200);
      return bodyAt(model);
    };
    const returned = await ask('vertexai', 'returned', both);
    expect(returned).toContain(signature);
    for (const foreign of signed) expect(returned).not.toContain(foreign);
    const stays = await ask('anthropic', 'stays', both);
    for (const block of thinking) expect(stays).toContain(JSON.stringify(block));
    expect(stays).not.toContain(signature);

    const dropped = [
      ...hello,
      ...assistant(withoutExtras(gemini.calls)),
      ...assistant(withoutExtras(claude.calls)),
    ];
    expect(await ask('vertexai', 'dropped', dropped)).toContain(skipped);
    expect(await ask('anthropic', 'without', dropped)).not.toMatch(/"(redacted_)?thinking"/);
    return 'foreign signatures left out, own ones sent back byte for byte; dropped ones: the documented value';
  },
);

type Extras = { google?: { thought_signature: string }; anthropic?: { signed_thinking: string } };
const extrasOf = ([call]: readonly ToolCall[]) => (call?.extra_content ?? {}) as Extras;
const signatureOf = (calls: readonly ToolCall[]) => extrasOf(calls).google?.thought_signature ?? '';
const thinkingOf = (calls: readonly ToolCall[]) => extrasOf(calls).anthropic?.signed_thinking ?? '';

/** Whether a fault shows before the first delta, so that a stream is tried again too. */
const unusable = {
  'sim-tool-unknown': true,
  'sim-tool-nameless': true,
  'sim-tool-garbage': false,
  'sim-tools-10000': false,
};

fault(
  {
    id: 'X3',
    injected:
      'a tool that was not offered, a call without a name, arguments that are no JSON, 10,000 calls, of every provider',
    callsPerRequest: 2,
    timeoutMs: 120_000,
  },
  async (books) => {
    const { workers, simulator } = await books.start({ variables: { CHAT_TIMEOUT_MS: '30000' } });
    await beginWell(books, 20);
    const before = footprintOf(workers).megabytes;
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, footprintOf(workers).megabytes)), 50);
    const shown: string[] = [];
    try {
      for (const [model, isEarly] of Object.entries(unusable))
        for (const stream of [false, true])
          await Promise.all(
            providerIds.map(async (provider) => {
              const asked = books.complete({ provider, model, fields: { stream } });
              const { status, error, calls, finish } = await asked.reply;
              expect([error?.code, finish ?? null]).toEqual(['provider_error', null]);
              expect(calls.length).toBeLessThanOrEqual(128);
              // A worker that has begun does not begin again, also where no reader has seen anything yet.
              const isRetried = isEarly || !stream;
              if (isRetried) expect([model, provider, status]).toEqual([model, provider, 502]);
              expect(simulator.calls.list({ model: asked.model })).toHaveLength(isRetried ? 2 : 1);
              if (status === 200) shown.push(`${model} of ${provider}`);
            }),
          );
    } finally {
      clearInterval(watch);
    }
    expect(most - before).toBeLessThan(150);
    await expectBreakersClosed(books);
    return `provider_error after one retry; ${shown.length} streams that had begun end with it; ${most - before} MB at most`;
  },
);
