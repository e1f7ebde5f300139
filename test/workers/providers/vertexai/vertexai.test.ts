import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startSimulator } from '../../../../dev/simulator/server.js';
import type { Part, Turn } from '../../../../shared/conversation.js';
import { callErrorOf } from '../../../../workers/providers/errors/error-classification.js';
import { startPlaying } from '../../../support/playing-provider.js';
import { vertexai } from '../../../support/provider-answers.js';
import { providerSetups, replyModes } from '../../../support/providers.js';
import { ask, partsOfReply } from '../../../support/replies.js';
import { serve } from '../../../support/serve.js';

const simulator = await startSimulator({ port: 0 });
const setup = providerSetups.find(({ id }) => id === 'vertexai') ?? expect.unreachable();
const provider = await setup.load(simulator.url);
afterAll(async () => {
  provider.close();
  await simulator.close();
});
const { play } = await startPlaying();

const usage = { promptTokenCount: 7, candidatesTokenCount: 3 };
const weather = { name: 'weather', parameters: { type: 'object' } };

describe.each(replyModes)('$mode', ({ mode, stream }) => {
  const asked = { stream, turns: [{ role: 'user' as const, content: 'Tell me a long story. '.repeat(20) }] };

  it('a reply that goes on by a token, three times -> one text, asked for four times, and the usage of all', async () => {
    const model = `sim-continues-3@${mode}`;
    const whole = await ask(provider, { model: `sim-echo@${mode}`, ...asked });
    const reply = await ask(provider, { model, ...asked });
    expect([reply.text, reply.reason]).toEqual([whole.text, 'stop']);
    const calls = simulator.calls.list().filter((call) => call.model === model);
    expect(calls.map(({ body }) => (body as Body).continuationToken)).toEqual([
      undefined,
      'MQ==',
      'Mg==',
      'Mw==',
    ]);
    const { inputTokens = 0, outputTokens = 0 } = whole.usage ?? {};
    expect(reply.usage?.inputTokens).toBe(4 * inputTokens);
    expect(reply.usage?.outputTokens).toBeGreaterThanOrEqual(outputTokens);
  });

  it('a reply that goes on without end -> is given up', async () => {
    const endless = {
      ...{ content: { role: 'model', parts: [{ text: 'On. ' }] } },
      ...{ finishReason: 'CONTINUATION' },
    };
    let place = 0;
    const answer = {
      get whole() {
        place += 1;
        return JSON.stringify({ candidates: [{ ...endless, continuationToken: `${place}` }] });
      },
      get events(): [string, object][] {
        return [['', JSON.parse(this.whole)]];
      },
    };
    const failure = await play('vertexai', answer, { stream }).catch((error: unknown) => error);
    expect(callErrorOf(failure)?.word).toBe('oversized');
    expect(place).toBeLessThan(200);
  });

  it('the connection for the rest of a reply breaks again and again -> may be asked for again, after a few tries', async () => {
    const content = { role: 'model', parts: [{ text: 'On. ' }] };
    const first = { candidates: [{ content, finishReason: 'CONTINUATION', continuationToken: 'MQ==' }] };
    let requests = 0;
    const server = await serve((request, response) => {
      requests += 1;
      if (requests > 1) return void request.socket.destroy();
      response.setHeader('Content-Type', stream ? 'text/event-stream' : 'application/json');
      response.end(stream ? `data: ${JSON.stringify(first)}\n\n` : JSON.stringify(first));
    });
    onTestFinished(() => server.close());
    const own = await setup.load(server.url);
    onTestFinished(() => own.close());
    await expect(ask(own, { model: 'm', ...asked })).rejects.toMatchObject({
      ...{ code: 'provider_error', retryable: true },
    });
    expect(requests).toBeLessThan(10);
  });

  it.each(['OTHER', 'CONTINUATION', 'A_NEW_WORD'])(
    '%s without a text -> may be asked for again',
    async (word) => {
      const answer = vertexai([[{ text: '' }]], word, usage);
      await expect(play('vertexai', answer, { stream })).rejects.toMatchObject({
        ...{ code: 'provider_error', retryable: true, cause: { word: 'unknown_end', isUnusable: true } },
      });
    },
  );

  it('texts and calls that are signed -> each signature is kept, and goes back on its part', async () => {
    const model = `sim-bound@${mode}`;
    const turns: Turn[] = [...asked.turns];
    for (const kinds of ['text opaque opaque tool_call', 'text opaque', 'text opaque opaque tool_call']) {
      const tools = [weather];
      const reply = await ask(provider, { model, stream, turns, parameters: { tools }, reasoning: 'opaque' });
      const parts = partsOfReply(reply);
      expect(parts.map(({ type }) => type).join(' ')).toBe(kinds);
      const call = parts.find((part) => part.type === 'tool_call');
      const result: Part = { type: 'tool_result', callId: call?.id ?? '', content: 'sun' };
      turns.push({ role: 'assistant', content: parts });
      turns.push({ role: 'user', content: call ? [result] : 'And tomorrow?' });
    }
    const last = simulator.calls.list().findLast((call) => call.model === model);
    const { contents } = (last?.body ?? { contents: [] }) as Body;
    const signed = contents
      .filter(({ role }) => role === 'model')
      .map(({ parts }) =>
        parts.map(({ text, thoughtSignature = '' }) => [Boolean(text), thoughtSignature !== '']),
      );
    expect(signed).toEqual([
      [
        [true, true],
        [false, true],
      ],
      [[true, true]],
    ]);
  });
});

interface Body {
  continuationToken?: string;
  contents: { role: string; parts: { text?: string; thoughtSignature?: string }[] }[];
}
