import { describe, expect, it } from 'vitest';
import type { Turn } from '../../../../shared/conversation.js';
import { type BodyOptions, toBody } from '../../../../workers/providers/anthropic/anthropic-body.js';
import { toInput } from '../../../../workers/providers/bedrock/bedrock-body.js';
import type { ProviderRequest } from '../../../../workers/providers/provider.js';

const { signal } = new AbortController();
const turn = (role: Turn['role'], content: Turn['content']): Turn => ({ role, content });
const bodyOf = (turns: Turn[], own: Partial<ProviderRequest> = {}, options?: BodyOptions) =>
  toBody({ turns, model: 'm', maxOutputTokens: 9, signal, ...own }, options);

describe('system texts', () => {
  const turns = [
    ...[turn('system', 'Be brief.'), turn('user', 'Hello'), turn('assistant', 'Hi')],
    ...[turn('user', 'Go on'), turn('system', 'Be kind.')],
  ];

  it('behind other turns -> messages there', () => {
    expect(bodyOf(turns)).toMatchObject({ system: 'Be brief.', messages: turns.slice(1) });
  });

  it('several in a row -> one message there, with a block of text for each, byte for byte', () => {
    const texts = ['Be kind.\n', ' Be <b>brief</b>. '];
    const said = [turn('user', 'Hello'), ...texts.map((text) => turn('system', text))];
    const content = texts.map((text) => ({ type: 'text', text }));
    const messages = [turn('user', 'Hello'), { role: 'system', content }];
    expect(bodyOf(said).messages).toEqual(messages);
    const more = [turn('assistant', 'Hi'), turn('user', 'Go on')];
    expect(bodyOf([...said, ...more]).messages).toEqual([...messages, ...more]);
  });

  it('several at the beginning -> the system prompt, with a block of text for each', () => {
    const said = [turn('system', 'a'), turn('system', 'b'), turn('user', 'Hello')];
    const system = ['a', 'b'].map((text) => ({ type: 'text', text }));
    expect(bodyOf(said)).toMatchObject({ system, messages: [turn('user', 'Hello')] });
  });

  it.each<[string, Partial<ProviderRequest>, BodyOptions]>([
    ['a model that has refused them', { omits: new Set(['laterSystem']) }, {}],
    ['a server of others', {}, { isForeign: true }],
  ])('behind other turns, for %s -> marked parts there', (_, own, options) => {
    const { system, messages } = bodyOf(turns, own, options);
    const content = ['Go on', '<system>\nBe kind.\n</system>'].map((text) => ({ type: 'text', text }));
    const reshaped = [...turns.slice(1, -2), { role: 'user', content }];
    expect({ system, messages }).toEqual({ system: 'Be brief.', messages: reshaped });
  });
});

describe('tools', () => {
  const parameters = {
    tools: [{ name: 'lax' }, { name: 'strict', parameters: { type: 'object' }, strict: true }],
  };
  const eagerOf = (options?: BodyOptions) =>
    bodyOf([turn('user', 'Hello')], { parameters }, options).tools?.map((tool) => tool.eager_input_streaming);

  it('without a strict schema -> write their arguments as they come, at a server of Anthropic', () => {
    expect(eagerOf()).toEqual([true, undefined]);
    expect(eagerOf({ isForeign: true })).toEqual([undefined, undefined]);
  });
});

describe('a request without a limit of tokens', () => {
  const limitOf = (parameters: ProviderRequest['parameters'], maxOutputTokens?: number) =>
    bodyOf([turn('user', 'Hello')], { parameters, maxOutputTokens }).max_tokens;

  it('-> has one, a larger one where it shall think much', () => {
    const efforts = [undefined, 'low', 'high', 'xhigh', 'max'] as const;
    const limits = efforts.map((reasoningEffort) => limitOf(reasoningEffort && { reasoningEffort }));
    expect(limits).toEqual([32_000, 32_000, 32_000, 64_000, 64_000]);
    expect(limitOf({ reasoningEffort: 'max' }, 9)).toBe(9);
  });
});

describe('a request for thinking in words', () => {
  const turns = [turn('user', 'Hello')];
  const request = { turns, model: 'anthropic.claude-opus-5', signal, asksThinking: true };
  const thinking = { type: 'adaptive', display: 'summarized' };

  it('-> asks Claude for summaries, and no other model, nor where it is not asked for', () => {
    expect(toBody(request).thinking).toEqual(thinking);
    expect(toBody({ ...request, asksThinking: false })).not.toHaveProperty('thinking');
    const fieldsOf = (own: Partial<ProviderRequest>) =>
      toInput({ ...request, ...own }).additionalModelRequestFields;
    expect(fieldsOf({})).toEqual({ thinking });
    expect([fieldsOf({ model: 'amazon.nova-pro' }), fieldsOf({ asksThinking: false })]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
