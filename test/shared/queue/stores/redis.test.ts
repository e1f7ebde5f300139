import { describe, expect, it } from 'vitest';
import { namesOfKeys } from '../../../../shared/queue/stores/redis.js';

describe('namesOfKeys', () => {
  it.each(['single', 'sentinel'] as const)('are what they always were (%s)', (topology) => {
    const keys = namesOfKeys({ topology, prefix: undefined });
    expect(keys.queuePrefix('chat-openai')).toBe('bull');
    expect(keys.relayPrefix).toBe('bull');
    expect(keys.record('a')).toBe('quillgate:record:a');
    expect(keys.channel('reply.a')).toBe('quillgate:0:reply.a');
  });

  it('tell the databases of a server apart, in which channels are the same', () => {
    const keys = namesOfKeys({ topology: 'single', prefix: 'stage', database: 7 });
    expect(keys.channel('reply.a')).toBe('stage:7:reply.a');
  });

  it('keep each queue of a cluster in one place of its own', () => {
    const keys = namesOfKeys({ topology: 'cluster', prefix: undefined });
    expect(keys.queuePrefix('chat-openai')).toBe('bull:{quillgate:chat-openai}');
    expect(keys.record('a')).toBe('quillgate:record:a');
  });

  it.each(['single', 'sentinel', 'cluster'] as const)(
    'all begin with the prefix that is given (%s)',
    (topology) => {
      const keys = namesOfKeys({ topology, prefix: 'stage' });
      expect([keys.queuePrefix('chat-openai'), keys.relayPrefix, keys.record('a')]).toEqual([
        expect.stringMatching(/^stage/),
        'stage',
        'stage:record:a',
      ]);
    },
  );
});
