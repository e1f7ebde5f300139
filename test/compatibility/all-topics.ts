import { z } from 'zod';
import { providerIds } from '../../shared/contract.js';
import { topics } from '../../shared/protocol/messages.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openRelay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';

/** A message as it was received, of any shape. */
export interface PublishedMessage {
  readonly topic: string;
  readonly message: Record<string, unknown>;
}

/** Records the messages of every topic of a store. */
export interface MessageRecorder {
  readonly published: PublishedMessage[];
  /** Resolves once a matching message has been published, before or after the call. */
  untilPublished(matches: (message: PublishedMessage) => boolean): Promise<void>;
  close(): Promise<void>;
}

/** Listens to every topic that there is. */
export async function listenToAll(store: QueueStore, log: Log): Promise<MessageRecorder> {
  const relay = await openRelay(store, { name: 'recorder', log });
  const published: PublishedMessage[] = [];
  const waiting = new Set<() => void>();
  const patterns = [
    'reply.*',
    topics.processes,
    ...providerIds.flatMap((id) => [topics.cancel(id), topics.limit(id)]),
  ];
  for (const topic of patterns)
    await relay.subscribe(topic, z.looseObject({}), (message) => {
      published.push({ topic, message });
      for (const check of waiting) check();
    });
  return {
    published,
    untilPublished: (matches) =>
      new Promise((resolve) => {
        const check = () => {
          if (!published.some(matches)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    close: () => relay.close(),
  };
}
