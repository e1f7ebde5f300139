import type { RedisAddress } from '../../urls/redis-url.js';

/** How the keys of one deployment are called. */
export interface RedisKeys {
  /** BullMQ's prefix for this queue. */
  queuePrefix(queue: string): string;
  /** BullMQ's prefix for the relay, which keeps a namespace in one slot by itself. */
  readonly relayPrefix: string;
  /** The key of a record; each is used alone, so a cluster may spread them. */
  record(key: string): string;
}

/**
 * A cluster places keys by what is in braces: one queue must be in one place, for a script sees nothing else, and the
 * providers' queues are spread over the masters (these words put four queues and the relay on all of three). Elsewhere there are
 * no braces, as there were none before: other names would strand the jobs of a running deployment.
 */
export function namesOfKeys({ topology, prefix }: Pick<RedisAddress, 'topology' | 'prefix'>): RedisKeys {
  const start = prefix ?? 'bull';
  const recordStart = prefix ?? 'quillgate';
  return {
    queuePrefix: (queue) => (topology === 'cluster' ? `${start}:{quillgate:${queue}}` : start),
    relayPrefix: start,
    record: (key) => `${recordStart}:record:${key}`,
  };
}
