import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';

import { type Turn, toTurns } from '../../../shared/conversation.js';
import { conversationShapes } from '../../support/conversations.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { readWire, type WireConversation } from '../../support/wire-conversations.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const shapes = conversationShapes
  .filter((shape) => shape.accepted)
  .map(({ name, messages }) => ({ name, turns: toTurns(messages) }));

describe.each(providerSetups)('$name', async ({ id, load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());

  describe.each(replyModes)('$mode', ({ stream }) => {
    it.each(shapes)('accepts and keeps every text of: $name', async ({ turns }) => {
      const since = simulator.calls.lastId;
      const model = turns.some(({ role }) => role === 'user') ? 'sim-verbatim' : 'sim-echo';
      const { text, ...reply } = await ask(provider, { model, stream, turns });

      const calls = simulator.calls.list({ since });
      expect(calls).toHaveLength(1);
      const wire = readWire(id, calls[0]?.body);
      if (id === 'openai') expect(wire.turns).toEqual(spoken(turns));
      else expectSameTexts(wire, turns);
      expect(reply).toMatchObject({ reason: 'stop', model, usage: expect.anything() });
      if (model === 'sim-verbatim')
        expect(text).toBe(wire.turns.findLast(({ role }) => role === 'user')?.content);
    });
  });
});

/** A conversation of system texts only is the user's to speak. */
const spoken = (turns: readonly Turn[]): Turn[] =>
  turns.every(({ role }) => role === 'system')
    ? turns.map((turn) => ({ ...turn, role: 'user' }))
    : [...turns];

const textOf = (turns: readonly Turn[]) => turns.map(({ content }) => content).join('\n\n');

function expectSameTexts(wire: WireConversation, turns: readonly Turn[]): void {
  const system = spoken(turns).filter(({ role }) => role === 'system');
  const others = spoken(turns).filter(({ role }) => role !== 'system');
  const added: Turn = { role: 'user', content: 'Continue.' };
  if (others.at(0)?.role !== 'user') others.unshift(added);
  if (others.at(-1)?.role !== 'user') others.push(added);
  expect(wire.system).toBe(system.length === 0 ? undefined : textOf(system));
  expect(textOf(wire.turns)).toBe(textOf(others));
  expect(wire.turns.map(({ role }) => role)).toEqual(
    wire.turns.map((_, place) => (place % 2 === 0 ? 'user' : 'assistant')),
  );
}
