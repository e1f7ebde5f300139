import type { z } from 'zod';
import { isNewer } from '../protocol/version.js';
import type { Log } from '../runtime/log.js';
import { withTimeout } from '../runtime/with-timeout.js';
import type { QueueStore } from './queue-store.js';

/**
 * Messages between processes, delivered at most once and never replayed, so nothing may depend on them alone. A small
 * interface over BullMQ's Relay, which is still marked experimental.
 */
export interface Relay {
  /** Resolves once the message is on its way to the current subscribers; rejects when the store is down. */
  publish(topic: string, message: object): Promise<void>;
  /**
   * Calls the listener with every message of the topic (or pattern: `*` one segment, `>` the rest) that parses. A newer release
   * may send others: the first is logged as a warning.
   */
  subscribe<T>(topic: string, schema: z.ZodType<T>, listener: (message: T) => void): Promise<void>;
  close(): Promise<void>;
}

/** `publish` rejects larger messages; 512 KiB is the Relay's own limit. */
export const maxMessageBytes = 512 * 1024;

/** A node that lost its registration (its store was wiped or unreachable) registers again within one heartbeat. */
const heartbeatInterval = 2000;
const leaseDuration = 15_000;

const closingMs = 1000;

/** Opens this process's end of the relay; the store must be ready. */
export async function openRelay(
  store: QueueStore,
  { name, log }: { name: string; log: Log },
): Promise<Relay> {
  const relay = store.createRelay({
    namespace: 'quillgate',
    name,
    heartbeatInterval,
    leaseDuration,
    maxMessageSize: maxMessageBytes,
  });
  // Closing removes the lease from the store; when that is down, the lease expires by itself.
  const close = () => withTimeout(closingMs, relay.close()).catch(() => undefined);
  await relay.waitUntilReady().catch(async (error) => {
    await close();
    throw error;
  });
  return {
    publish: async (topic, message) => {
      await relay.publish(topic, message);
    },
    subscribe: async (topic, schema, listener) => {
      let isLogged = false;
      await relay.subscribe(topic, ({ data }) => {
        const parsed = schema.safeParse(data);
        if (parsed.success) return listener(parsed.data);
        const level = isLogged ? 'debug' : 'warn';
        log[level]({ topic, isNewer: isNewer(data) }, 'relay message that cannot be read ignored');
        isLogged = true;
      });
    },
    close,
  };
}
