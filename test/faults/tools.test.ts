import { expect } from 'vitest';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { profiles } from '../support/profiles.js';
import { callsIn, type ReadToolCompletion, type ToolCall } from '../support/tool-completions.js';
import { catalogue } from './support/catalogue.js';
import { killWorkerOf, readChat } from './support/killed-worker.js';

const rules = { callsPerRequest: 2, lost: 1 };

catalogue({ variables: profiles.short, workers: 2 }, (add) => {
  add(
    'X1 a worker killed between two pieces of the arguments of a streamed call → an error, and no whole call',
    { ...rules, lost: 1 },
    async (books) => {
      const asked = books.complete({ model: 'sim-tool-gate-9', fields: { stream: true } });
      await asked.begun;
      await killWorkerOf(books);
      const { status, error, finish, calls } = await asked.reply;
      expect([status, error?.code, finish ?? null]).toEqual([200, 'internal', null]);
      expect(() => JSON.parse(calls[0]?.function.arguments ?? '')).toThrow();
      expectWhole(await books.complete({ model: 'sim-tools', fields: { stream: true } }).reply);
    },
  );

  add(
    'X1 a worker killed between two pieces of the arguments of a stored call → its reader gets an error, a new one the second reply whole',
    { ...rules, lost: 1 },
    async (books) => {
      const call = {
        ...{ model: 'sim-tool-gate-9@X1-stored', headers: { 'Idempotency-Key': 'X1' } },
        fields: { stream: true },
      };
      const first = books.complete(call);
      await first.begun;
      await killWorkerOf(books);
      const broken = await first.reply;
      expect([broken.status, broken.error?.code, broken.finish ?? null]).toEqual([200, 'internal', null]);
      const again = books.complete(call);
      again.open();
      const whole = await again.reply;
      expectWhole(whole);
      expect(await readChat(books, whole)).toMatchObject({
        status: 'completed',
        completion: { choices: [{ finish_reason: 'tool_calls', message: { tool_calls: whole.calls } }] },
      });
      expect(books.deployment.simulator.calls.list({ model: call.model })).toHaveLength(2);
    },
  );

  add(
    'X2 a signed history of Gemini falls back to Claude and returns → each gets its own signatures alone, and one whose client drops them goes on',
    rules,
    async (books) => {
      const bodyAt = (model: string) =>
        JSON.stringify(books.deployment.simulator.calls.list({ model }).at(-1)?.body);
      const hello = [{ role: 'user', content: 'Hello' }];
      // Another tool than Claude's: the simulator signs equal calls alike.
      const fields = { tool_choice: { type: 'function', function: { name: 'clock' } } };
      const [source, target] = ['sim-tool-signed@X2-gemini', 'sim-tool-signed@X2'];
      const gemini = await books.complete({ provider: 'vertexai', model: source, fields }).reply;
      const signature = signatureOf(gemini.calls);
      expect(signature).toMatch(/./);

      const history = [...hello, ...assistant(gemini.calls), { role: 'user', content: 'And now?' }];
      const claude = await books.complete({
        ...{ provider: 'vertexai', model: 'sim-status-500@X2', fields: { messages: history } },
        headers: { 'X-LLM-Fallback': `anthropic/${target}` },
      }).reply;
      expect(claude).toMatchObject(whole);
      expect(bodyAt(target)).not.toContain(signature);
      expect(bodyAt(target)).not.toMatch(/signature|thinking/);
      const thinking: { signature?: string; data?: string }[] = JSON.parse(thinkingOf(claude.calls));
      const signed = thinking.map(({ signature: text, data }) => text ?? data);
      expect(signed).toEqual([expect.any(String), expect.any(String), expect.any(String)]);

      const both = [...history, ...assistant(claude.calls)];
      // To no other model than the one that signed it.
      const ask = async (provider: ProviderId, model: string, messages: object[]) => {
        const { status } = await books.complete({ provider, model, fields: { messages } }).reply;
        expect(status).toBe(200);
        return bodyAt(model);
      };
      const returned = await ask('vertexai', source, both);
      expect(returned).toContain(signature);
      for (const foreign of signed) expect(returned).not.toContain(foreign);
      const stays = await ask('anthropic', target, both);
      for (const block of thinking) expect(stays).toContain(JSON.stringify(block));
      expect(stays).not.toContain(signature);

      const dropped = [
        ...hello,
        ...assistant(withoutExtras(gemini.calls)),
        ...assistant(withoutExtras(claude.calls)),
      ];
      expect(await ask('vertexai', 'sim-echo@X2-dropped', dropped)).toContain(skipped);
      expect(await ask('anthropic', 'sim-echo@X2-without', dropped)).not.toMatch(/"(redacted_)?thinking"/);
    },
  );
});

const whole = { finish: 'tool_calls', error: undefined, content: null };

function expectWhole(reply: ReadToolCompletion): void {
  expect(reply).toMatchObject(whole);
  expect(callsIn(reply)).toEqual([['weather', { city: expect.any(String), unit: 'celsius' }]]);
}

const assistant = (calls: readonly ToolCall[]) => [
  { role: 'assistant', content: null, tool_calls: calls },
  ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'warm' })),
];
const withoutExtras = (calls: readonly ToolCall[]): ToolCall[] =>
  calls.map(({ extra_content: _, ...call }) => call);
const skipped = 'skip_thought_signature_validator';

type Extras = { google?: { thought_signature: string }; anthropic?: { signed_thinking: string } };
const extrasOf = ([call]: readonly ToolCall[]) => (call?.extra_content ?? {}) as Extras;
const signatureOf = (calls: readonly ToolCall[]) => extrasOf(calls).google?.thought_signature ?? '';
const thinkingOf = (calls: readonly ToolCall[]) => extrasOf(calls).anthropic?.signed_thinking ?? '';
