import { z } from 'zod';
import { providerIds } from '../../shared/contract.js';
import { topics } from '../../shared/protocol/messages.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openRelay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';

/** A message as it came, whatever it is. */
export interface Told {
  readonly topic: string;
  readonly message: Record<string, unknown>;
}

/** An ear at every topic of a store. */
export interface Ear {
  readonly told: Told[];
  /** Resolves when a message was told, before or from now on, that fits. */
  untilTold(fits: (one: Told) => boolean): Promise<void>;
  close(): Promise<void>;
}

/** Listens to every topic that there is. */
export async function listenToAll(store: QueueStore, log: Log): Promise<Ear> {
  const relay = await openRelay(store, { name: 'ear', log });
  const told: Told[] = [];
  const waiting = new Set<() => void>();
  const patterns = [
    'reply.*',
    'pool.>',
    ...providerIds.flatMap((id) => [topics.cancel(id), topics.limit(id)]),
  ];
  for (const topic of patterns)
    await relay.subscribe(topic, z.looseObject({}), (message) => {
      told.push({ topic, message });
      for (const look of waiting) look();
    });
  return {
    told,
    untilTold: (fits) =>
      new Promise((resolve) => {
        const look = () => {
          if (!told.some(fits)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    close: () => relay.close(),
  };
}
