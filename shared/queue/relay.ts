import type { z } from 'zod';
import { isNewer } from '../protocol/version.js';
import type { Log } from '../runtime/log.js';
import { withTimeout } from '../runtime/with-timeout.js';
import type { QueueStore } from './queue-store.js';

/**
 * Telling between processes: at most once and never replayed, so it never is the only carrier of anything. Our own
 * small interface over BullMQ's Relay, which is still called experimental.
 */
export interface Relay {
  /** Resolves once the message is on its way to everyone who listens now; rejects when the store is down. */
  publish(topic: string, message: object): Promise<void>;
  /**
   * Calls the listener with every message of the topic (or pattern: `*` one segment, `>` the rest) that parses. Of those that
   * do not, which a newer release may send, the first is noted in the log.
   */
  subscribe<T>(topic: string, schema: z.ZodType<T>, listener: (message: T) => void): Promise<void>;
  close(): Promise<void>;
}

/** Larger messages are refused by `publish`; 512 KiB is the Relay's own bound. */
export const maxMessageBytes = 512 * 1024;

/** A node that lost its registration (its store was wiped or unreachable) is back after one heartbeat. */
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
  // Leaving takes a word with the store, which may be gone; its lease ends by itself.
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
      let isNoted = false;
      await relay.subscribe(topic, ({ data }) => {
        const parsed = schema.safeParse(data);
        if (parsed.success) return listener(parsed.data);
        const level = isNoted ? 'debug' : 'warn';
        log[level]({ topic, isNewer: isNewer(data) }, 'relay message that cannot be read ignored');
        isNoted = true;
      });
    },
    close,
  };
}
