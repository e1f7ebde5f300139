import { inject } from 'vitest';
import { queueName } from '../../../shared/protocol/messages.js';
import { namesOfKeys } from '../../../shared/queue/stores/redis.js';
import type { RedisProcess } from '../../support/redis-process.js';
import { type RedisTopology, startTopology } from '../../support/redis-topologies.js';
import type { StoreServer } from '../../support/stores.js';
import type { Books } from './books.js';

/** Redis on several servers that one case alone uses. */
export interface OwnTopology extends RedisTopology {
  /** To start a deployment on; the database is everybody's. */
  readonly store: StoreServer;
  /** The server that has the queue of OpenAI for now. */
  master(): Promise<RedisProcess>;
}

/** Starts one of the kind that the run is on; it ends with the case. */
export async function startOwnTopology(books: Books): Promise<OwnTopology> {
  const { topology, databaseUrl } = inject('store');
  if (topology === undefined) throw new Error('this run has one server alone');
  const own = await startTopology[topology]();
  books.release(own.stop);
  const key = namesOfKeys({ topology, prefix: undefined }).queuePrefix(queueName('openai'));
  return {
    ...own,
    store: { kind: 'redis', topology, url: own.url, databaseUrl },
    master: () => own.masterOf(key),
  };
}
