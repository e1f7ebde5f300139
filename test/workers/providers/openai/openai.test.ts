import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../../dev/simulator/server.js';
import type { Part, Turn } from '../../../../shared/conversation.js';
import { callChain } from '../../../../workers/job/call-chain.js';
import type { ModelRequest } from '../../../../workers/job/model-request.js';
import { RefusedParts } from '../../../../workers/job/refused-parts.js';
import { RetryBudget } from '../../../../workers/job/retry.js';
import type { ProviderReply } from '../../../../workers/providers/provider.js';
import { callOf, pass } from '../../../support/calls.js';
import { patienceMs } from '../../../support/patience.js';
import { providerSetups } from '../../../support/providers.js';
import { callsOf, partsOfReply } from '../../../support/replies.js';

// How OpenAI's models, and those of servers that speak its API, hold a conversation with what they refuse.

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

/** A chat with a model by this API, whose notes last from call to call; gives the reply and how often it was asked. */
async function openChat(wire: 'responses' | 'chat', model: string) {
  const name = wire === 'chat' ? 'openai by chat completions' : 'openai by responses';
  const setup = providerSetups.find((each) => each.name === name);
  const provider = (await setup?.load(simulator.url)) ?? expect.unreachable();
  afterAll(() => provider.close());
  const ask = callChain({
    provider,
    refused: new RefusedParts(),
    budget: new RetryBudget(),
    gate: { run: (call, make) => make({ ...call, pass } as never) },
    metrics: { watchCall: (call, next) => next(call) },
  });
  const times = { timeoutMs: patienceMs, firstTokenTimeoutMs: patienceMs, idleTimeoutMs: patienceMs };
  return async (turns: Turn[], more: Partial<ModelRequest> = {}) => {
    const since = simulator.calls.lastId;
    const parameters = { tools: [{ name: 'look' }], ...more.parameters };
    const request = { model, turns, reasoning: 'opaque' as const, ...more, parameters };
    const deadline = Date.now() + patienceMs;
    const reply = await Promise.resolve(ask(callOf({ request, deadline, user: 'M', settings: times }))).catch(
      (error: unknown) => error as ProviderReply & { code: string },
    );
    return { reply, asked: simulator.calls.list({ since }).filter((call) => call.model === model).length };
  };
}

const hello: Turn = { role: 'user', content: 'Hello' };

/** The reply as a turn, the results of its calls, and the next question, as a client sends them back. */
function backFrom(reply: ProviderReply, change = (part: Part): Part[] => [part]): Turn[] {
  const parts = partsOfReply(reply).flatMap((part) => (part.type === 'opaque' ? change(part) : [part]));
  const results = callsOf(reply).map(
    ({ id }): Part => ({ type: 'tool_result', callId: id, content: 'seen' }),
  );
  return [
    { role: 'assistant', content: parts },
    { role: 'user', content: [...results, { type: 'text', text: 'And now?' }] },
  ];
}

const opaqueIn = (reply: ProviderReply) => reply.marks?.filter(({ kind }) => kind === 'opaque').length;

describe('a model that takes no tools beside effort', () => {
  const parameters = { reasoningEffort: 'high' } as const;

  it('is asked by Responses for both -> calls, at once', async () => {
    const ask = await openChat('responses', 'sim-no-effort@responses');
    const { reply, asked } = await ask([hello], { parameters });
    expect([callsOf(reply).length, asked]).toEqual([1, 1]);
  });

  it('is asked by chat completions, and has no effort of none -> refused after one repetition', async () => {
    const ask = await openChat('chat', 'sim-no-effort@chat');
    const { reply, asked } = await ask([hello], { parameters });
    expect([reply, asked]).toMatchObject([{ code: 'provider_rejected' }, 2]);
  });
});

it('a model that does not reason is asked to say its reasoning -> once more without, and then never', async () => {
  const ask = await openChat('responses', 'sim-plain@notes');
  const asked = [await ask([hello]), await ask([hello]), await ask([hello], { reasoning: undefined })];
  expect(asked.map((each) => [each.reply.reason, each.asked])).toEqual([
    ['stop', 2],
    ['stop', 1],
    ['stop', 1],
  ]);
});

describe.each([
  { wire: 'responses', model: 'sim-tool-signed' },
  { wire: 'chat', model: 'sim-foreign-deepseek' },
] as const)('$model, which thinks before its calls, by $wire', ({ wire, model }) => {
  it('gets back what it thought -> goes on, loop by loop, and is asked once each time', async () => {
    const ask = await openChat(wire, `${model}@kept`);
    const turns = [hello];
    for (let loop = 1; loop <= 3; loop += 1) {
      const { reply, asked } = await ask(turns);
      expect([loop, callsOf(reply).length, asked]).toEqual([loop, 1, 1]);
      expect(opaqueIn(reply)).toBeGreaterThan(0);
      turns.push(...backFrom(reply));
    }
  });

  it('gets back what it did not think, or nothing -> is asked once more', async () => {
    const ask = await openChat(wire, `${model}@changed`);
    const { reply } = await ask([hello]);
    const damage = (part: Part): Part[] =>
      wire === 'chat' || part.type !== 'opaque'
        ? []
        : [{ ...part, data: part.data.replace(/"encrypted_content":"./, '$&A') }];
    const turns = [hello, ...backFrom(reply, damage)];
    const asked = [await ask(turns), await ask(turns)];
    // That a server demands reasoning is remembered; which signatures it refuses is not.
    const later = wire === 'chat' ? 1 : 2;
    expect(asked.map((each) => [callsOf(each.reply).length, each.asked])).toEqual([
      [1, 2],
      [1, later],
    ]);
  });
});
