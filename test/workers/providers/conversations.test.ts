import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import { startPlaying } from '../../support/playing-provider.js';
import { plain } from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play, sent } = await startPlaying();
const turn = (role: Turn['role'], content: string) => ({ role, content });

/** A conversation in the words of each provider. */
const wire: Record<ProviderId, (turns: ReturnType<typeof turn>[], system?: string) => object> = {
  openai: (messages) => ({ messages }),
  anthropic: (messages, system) => ({ messages, system }),
  bedrock: (turns, text) => ({
    messages: turns.map(({ role, content }) => ({ role, content: [{ text: content }] })),
    system: text && [{ text }],
  }),
  vertexai: (turns, text) => ({
    contents: turns.map(({ role, content }) => ({
      role: role === 'assistant' ? 'model' : role,
      parts: [{ text: content }],
    })),
    systemInstruction: text && expect.objectContaining({ parts: [{ text }] }),
  }),
};

const system = [turn('system', ' Be brief. '), turn('system', '\uFEFF🎉\r\n')];
const joined = ' Be brief. \n\n\uFEFF🎉\r\n';
const said = [turn('user', '\n"a" \\ <b>\u2028'), turn('assistant', '\u0000\tc 👩🏽‍💻')];
const mixed = system.toSpliced(1, 0, ...said);

// What is made of any other conversation is the same for all but OpenAI: toAlternating has it.
describe.each(replyModes)('$mode', ({ stream }) => {
  const send = async (id: ProviderId, turns: Turn[]) => {
    await play(id, plain[id](), { stream, turns });
    return { system: undefined, systemInstruction: undefined, ...JSON.parse(sent()) };
  };

  it.each(providerIds)('texts of every role -> sent to %s byte for byte', async (id) => {
    const body =
      id === 'openai' ? wire.openai(mixed) : wire[id]([...said, turn('user', 'Continue.')], joined);
    expect(await send(id, mixed)).toMatchObject(body);
  });

  it.each(providerIds)('system texts alone -> sent to %s as those of the user', async (id) => {
    const spoken = id === 'openai' ? system.map(({ content }) => content) : [joined];
    expect(await send(id, system)).toMatchObject(wire[id](spoken.map((text) => turn('user', text))));
  });
});
