import type { Log } from '../../runtime/log.js';
import type { PubSub } from '../queue-store.js';
import type { RedisConnection } from './redis-connection.js';

interface PubSubConnections {
  publisher: Pick<RedisConnection, 'publish'>;
  connect: (mode: 'listening') => RedisConnection;
  log: Log;
}

/** How often the listening connection is tested: idle, it would not notice that it has died without a word. */
const pingIntervalMs = 1000;

/** Publish/subscribe of one Redis server. Its own connection listens, and is opened by the first to subscribe. */
export class RedisPubSub implements PubSub {
  readonly #connections: PubSubConnections;
  readonly #channelOf: (topic: string) => string;
  readonly #listeners = new Map<string, (message: string) => void>();
  #subscriber: RedisConnection | undefined;
  #pinging: NodeJS.Timeout | undefined;
  #isRefused = false;

  constructor(connections: PubSubConnections, channelOf: (topic: string) => string) {
    this.#connections = connections;
    this.#channelOf = channelOf;
  }

  async publish(topic: string, message: string): Promise<number> {
    const { publisher } = this.#connections;
    return publisher.publish(this.#channelOf(topic), message).catch((error) => this.#onRefusal(error));
  }

  async subscribe(topic: string, listener: (message: string) => void): Promise<boolean> {
    const channel = this.#channelOf(topic);
    this.#listeners.set(channel, listener);
    this.#subscriber ??= this.#open();
    const channels = await this.#subscriber.subscribe(channel).catch((error) => this.#onRefusal(error));
    return channels !== 0;
  }

  close(): void {
    clearInterval(this.#pinging);
    this.#subscriber?.disconnect();
  }

  #open(): RedisConnection {
    const subscriber = this.#connections.connect('listening');
    subscriber.on('message', (channel, message) => this.#listeners.get(channel)?.(message));
    // ioredis does not handle the rejection when its own attempt is refused, which would end the process.
    subscriber.on('ready', () => {
      const channels = [...this.#listeners.keys()];
      subscriber.subscribe(...channels).catch((error) => this.#onRefusal(error));
    });
    const ping = () => subscriber.status === 'ready' && subscriber.ping().catch(() => undefined);
    this.#pinging = setInterval(ping, pingIntervalMs);
    return subscriber;
  }

  /** An ACL without the channels is a reason to be slower, not to fail. */
  #onRefusal(error: unknown): 0 {
    const isDenied = error instanceof Error && error.message.startsWith('NOPERM');
    const level = isDenied && !this.#isRefused ? 'warn' : 'debug';
    if (isDenied) this.#isRefused = true;
    this.#connections.log[level]({ err: error }, 'Redis refuses publish/subscribe');
    return 0;
  }
}
