import type { z } from 'zod';
import { isNewer } from '../protocol/version.js';
import type { Log } from '../runtime/log.js';
import { closedInTime } from '../runtime/retry.js';
import type { QueueStore } from './queue-store.js';

/**
 * Messages between processes, delivered at most once and never replayed, so nothing may depend on them alone. They go
 * by BullMQ's Relay, or by Redis' own publish/subscribe, which costs a tenth of it (decision 32).
 */
export interface Relay {
  /** The id of this process in `nodes`; it stays the same while the process runs. */
  readonly nodeId: string;
  /** Resolves once the message is on its way to the current subscribers; rejects when the store is down. */
  publish(topic: string, message: object): Promise<void>;
  /** The listener gets what parses; the first of the others is logged as a warning. In a topic `*` is one segment. */
  subscribe<T>(topic: string, schema: z.ZodType<T>, listener: (message: T) => void): Promise<void>;
  /** As `publish`, for the topic of one process: by the shorter way, if that process listens there at this moment. */
  send(topic: string, message: object): Promise<void>;
  /** Subscribes to what is sent by either way. One message may overtake another only while its way changes. */
  receive<T>(topic: string, schema: z.ZodType<T>, listener: (message: T) => void): Promise<void>;
  /** As `publish`, for what is sent each second or so; a message is lost to a process that is connecting again. */
  broadcast(topic: string, message: object): Promise<void>;
  /** Subscribes to what is broadcast; the topic has no pattern. */
  follow<T>(topic: string, schema: z.ZodType<T>, listener: (message: T) => void): Promise<void>;
  /** The processes on the relay; a dead one may be listed for a while. Waits for a store that is down, or rejects. */
  nodes(): Promise<RelayNode[]>;
  close(): Promise<void>;
}

/** A process on the relay. */
export interface RelayNode {
  readonly id: string;
  /** When it last reported, by the store's clock in ms; it does every two seconds. Undefined once its lease expired. */
  readonly lastHeartbeat?: number | undefined;
}

/** `publish` rejects larger messages; 512 KiB is the Relay's own limit. */
export const maxMessageBytes = 512 * 1024;

/** A node that lost its registration (its store was wiped or unreachable) registers again within one heartbeat. */
const heartbeatInterval = 2000;
const leaseDuration = 15_000;

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
  const pubSub = store.createPubSub();
  const close = async () => {
    pubSub?.close();
    // Closing removes the lease from the store; when that is down, the lease expires by itself.
    await closedInTime(relay.close());
  };
  await relay.waitUntilReady().catch(async (error) => {
    await close();
    throw error;
  });
  const publish: Relay['publish'] = async (topic, message) => void (await relay.publish(topic, message));
  const listen = async <T>(topic: string, schema: z.ZodType<T>, listener: (message: T) => void) => {
    const onData = reader({ topic, schema, log }, listener);
    await relay.subscribe(topic, ({ data }) => onData(data));
    return onData;
  };
  return {
    nodeId: relay.nodeId,
    publish,
    subscribe: async (...subscription) => void (await listen(...subscription)),
    send: async (topic, message) => {
      const subscribers = await pubSub?.publish(topic, JSON.stringify(message));
      // A process that is just connecting again finds it in its inbox.
      if (!subscribers) await publish(topic, message);
    },
    receive: async (topic, schema, listener) => {
      const onData = await listen(topic, schema, listener);
      await pubSub?.subscribe(topic, onText(onData, log));
    },
    broadcast: async (topic, message) => {
      const followers = await pubSub?.publish(topic, JSON.stringify(message));
      await publish(followers ? missedTopic(topic) : topic, message);
    },
    follow: async (topic, schema, listener) => {
      const onData = await listen(topic, schema, listener);
      const isRefused = pubSub !== undefined && !(await pubSub.subscribe(topic, onText(onData, log)));
      if (isRefused) await listen(missedTopic(topic), schema, listener);
    },
    nodes: () => relay.getNodes(),
    close,
  };
}

/** Where a broadcast goes for processes that may not listen to channels, while others do. */
const missedTopic = (topic: string): string => `${topic}.missed`;

/** Passes on to the listener what parses. */
function reader<T>(
  { topic, schema, log }: { topic: string; schema: z.ZodType<T>; log: Log },
  listener: (message: T) => void,
): (data: unknown) => void {
  let isLogged = false;
  return (data) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return listener(parsed.data);
    const level = isLogged ? 'debug' : 'warn';
    log[level]({ topic, isNewer: isNewer(data) }, 'relay message that cannot be read ignored');
    isLogged = true;
  };
}

/** Goes on after what is no JSON and after a listener that throws, as BullMQ's Relay does. */
const onText = (onData: (data: unknown) => void, log: Log) => (text: string) => {
  try {
    onData(JSON.parse(text));
  } catch (err) {
    log.debug({ err }, 'message not taken');
  }
};
