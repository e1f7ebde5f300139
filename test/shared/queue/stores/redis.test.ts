import { describe, expect, it } from 'vitest';
import { namesOfKeys } from '../../../../shared/queue/stores/redis.js';

describe('namesOfKeys', () => {
  const names = (of: Parameters<typeof namesOfKeys>[0]) => {
    const { queuePrefix, relayPrefix, record, channel } = namesOfKeys(of);
    return [queuePrefix('chat-openai'), relayPrefix, record('a'), channel('reply.a')];
  };

  it.each(['single', 'sentinel'] as const)('are what they always were (%s)', (topology) => {
    const ours = ['bull', 'bull', 'quillgate:record:a', 'quillgate:0:reply.a'];
    expect(names({ topology, prefix: undefined })).toEqual(ours);
    // Channels are the same in all databases of a server.
    const staged = ['stage', 'stage', 'stage:record:a', 'stage:7:reply.a'];
    expect(names({ topology, prefix: 'stage', database: 7 })).toEqual(staged);
  });

  it('keep each queue of a cluster in one place of its own', () => {
    const plain = names({ topology: 'cluster', prefix: undefined });
    expect([plain[0], plain[2]]).toEqual(['bull:{quillgate:chat-openai}', 'quillgate:record:a']);
    const [queue, ...rest] = names({ topology: 'cluster', prefix: 'stage' });
    expect(queue).toMatch(/^stage/);
    expect(rest.slice(0, 2)).toEqual(['stage', 'stage:record:a']);
  });
});
