import { EventEmitter, once } from 'node:events';
import { maxMessageBytes, type Relay } from '../../shared/queue/relay.js';

/** What was published. */
export interface Told {
  readonly topic: string;
  readonly message: object;
}

/** A relay that leads nowhere, keeps what is published, and refuses what the relay would refuse. */
export interface RecordingRelay extends Relay {
  readonly told: Told[];
  /** Resolves once this many messages have been told, with all of them. */
  toldAtLeast(count: number): Promise<Told[]>;
}

export function createRecordingRelay(): RecordingRelay {
  const told: Told[] = [];
  const events = new EventEmitter();
  return {
    told,
    toldAtLeast: async (count) => {
      while (told.length < count) await once(events, 'told');
      return told;
    },
    publish: async (topic, message) => {
      if (Buffer.byteLength(JSON.stringify(message)) > maxMessageBytes) throw new Error('too large');
      told.push({ topic, message });
      events.emit('told');
    },
    subscribe: async () => {},
    close: async () => {},
  };
}
