import { EventEmitter, once } from 'node:events';
import { maxMessageBytes, type Relay } from '../../shared/queue/relay.js';

/** A message that was published. */
export interface PublishedMessage {
  readonly topic: string;
  readonly message: object;
}

/** A relay without subscribers that records what is published, and refuses what the real one would refuse. */
export interface RecordingRelay extends Relay {
  readonly published: PublishedMessage[];
  /** Resolves with all messages once this many have been published. */
  publishedAtLeast(count: number): Promise<PublishedMessage[]>;
}

export function createRecordingRelay(): RecordingRelay {
  const published: PublishedMessage[] = [];
  const events = new EventEmitter();
  const publish: Relay['publish'] = async (topic, message) => {
    if (Buffer.byteLength(JSON.stringify(message)) > maxMessageBytes) throw new Error('too large');
    published.push({ topic, message });
    events.emit('published');
  };
  return {
    nodeId: 'node',
    nodes: async () => [],
    published,
    publishedAtLeast: async (count) => {
      while (published.length < count) await once(events, 'published');
      return published;
    },
    publish,
    send: publish,
    broadcast: publish,
    subscribe: async () => {},
    receive: async () => {},
    follow: async () => {},
    close: async () => {},
  };
}
