import { afterAll, beforeAll, describe } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../../shared/queue/stores/open.js';
import type { Log } from '../../shared/runtime/log.js';
import { patienceMs } from './patience.js';
import { findStores, freshStore, type StoreKind, type StoreServer } from './stores.js';
import { openWireTo, type Wire } from './wire.js';

/** Two connections to one store that nothing else uses, as two processes would have. */
export interface SharedStore {
  /** Connected through the wire. */
  readonly store: QueueStore;
  readonly another: QueueStore;
  readonly wire: Wire & { readonly url: string };
  /** Past the wire. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Opens a fresh part of the store twice, once through a wire. */
export async function openSharedStore(server: StoreServer, log: Log): Promise<SharedStore> {
  const variables = await freshStore(server);
  await migrateQueueStore(parseConfig(variables, 'config'));
  const name = server.kind === 'redis' ? 'REDIS_URL' : 'DATABASE_URL';
  const wire = await openWireTo(variables[name] ?? '');
  const store = openQueueStore(parseConfig({ [name]: wire.url }, 'config'), log);
  const another = openQueueStore(parseConfig(variables, 'config'), log);
  await Promise.all([store, another].map((one) => one.whenReady(AbortSignal.timeout(patienceMs))));
  return {
    store,
    another,
    wire,
    url: variables[name] ?? '',
    stop: async () => {
      await Promise.all([store.close(), another.close()]);
      await wire.close();
    },
  };
}

type Suite = (shared: SharedStore, name: StoreKind) => void;

/** The same suite for each kind of store, under its `$kind`; before its first test `shared` becomes what it says. */
export function describeStores(title: string, log: Log, suite: Suite): void {
  describe.each(findStores())(title, (server) => {
    const shared = {} as SharedStore;
    beforeAll(async () => void Object.assign(shared, await openSharedStore(server, log)));
    afterAll(() => shared.stop?.());
    suite(shared, server.kind);
  });
}
