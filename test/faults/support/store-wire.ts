import { inject } from 'vitest';
import type { StoreServer } from '../../support/stores.js';
import { openWireTo, type Wire } from '../../support/wire.js';
import type { Books } from './books.js';

/**
 * A wire to the queue's store, for one case, and the store at its other end to start a deployment on. Where the queue
 * is in PostgreSQL there is one store, so that the database goes with it.
 */
export async function openStoreWire(books: Books): Promise<{ wire: Wire; store: StoreServer }> {
  const { kind, url, databaseUrl } = inject('store');
  const wire = await openWireTo(url);
  books.release(wire.close);
  return { wire, store: { kind, url: wire.url, databaseUrl: kind === 'redis' ? databaseUrl : wire.url } };
}
