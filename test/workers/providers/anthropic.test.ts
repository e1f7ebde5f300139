import { describe, expect, it } from 'vitest';
import { isMendable } from '../../../shared/protocol/attempts.js';
import { providerErrorOf } from '../../../workers/providers/error-classification.js';
import { type PlayedAnswer, startPlaying } from '../../support/playing-provider.js';
import { anthropic, deltas, started } from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play } = await startPlaying();

/** The answer with these details of its end. */
const detailed = ({ whole, events }: PlayedAnswer, stop_details: unknown): PlayedAnswer => ({
  whole: JSON.stringify({ ...JSON.parse(whole), stop_details }),
  events: events.map(([name, data]) => {
    if (name !== 'message_delta') return [name, data];
    const { delta } = data as { delta: object };
    return [name, { ...(data as object), delta: { ...delta, stop_details } }];
  }),
});

const thought = { type: 'thinking', thinking: '', signature: 'c2ln' };
const silent = anthropic({
  blocks: [thought],
  pieces: [started(0, thought), ['content_block_stop', { index: 0 }]],
  stopReason: 'refusal',
});
const speaking = anthropic({
  blocks: [{ type: 'text', text: 'Well' }],
  pieces: [started(0, { type: 'text', text: '' }), ...deltas(0, { type: 'text_delta', text: 'Well' })],
  stopReason: 'refusal',
});

describe.each(replyModes)('a $mode reply that a classifier refuses', ({ stream }) => {
  it.each([
    [{ type: 'refusal', category: 'cyber', explanation: 'secret' }, 'refusal_cyber'],
    [{ type: 'refusal', category: null, explanation: null }, 'refusal_other'],
    [{ category: 'secret word' }, 'refusal_other'],
    [null, 'refusal_other'],
  ])('before any text, with %j -> fails as %s, which another provider may mend, and is not repeated', async (details, type) => {
    const failure = await play('anthropic', detailed(silent, details), { stream }).catch((error) => error);
    expect(failure).toMatchObject({ code: 'content_blocked', retryable: false, facts: { usage: { inputTokens: 15 } } });
    const ended = { provider: 'anthropic', code: failure.code, providerError: providerErrorOf(failure) } as const;
    expect(ended.providerError).toEqual({ type });
    expect(isMendable(ended)).toBe(true);
    expect(JSON.stringify([failure, failure.cause])).not.toContain('secret');
  });

  it('behind text -> is blocked, as by any filter', async () => {
    const answer = detailed(speaking, { type: 'refusal', category: 'bio' });
    expect(await play('anthropic', answer, { stream })).toMatchObject({ reason: 'blocked' });
    expect(isMendable({ provider: 'anthropic', code: 'content_blocked' })).toBe(false);
  });
});
