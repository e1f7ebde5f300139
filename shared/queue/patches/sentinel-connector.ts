/*
 * Patch of ioredis 6.0.0: the private `failoverDetector` of its connector.
 * Gives: recovery. A connection was closed for good when a Sentinel told of a failover while it asked for the master.
 * Until: ioredis connects again after that.
 */
import { type SentinelConnectionOptions, SentinelConnector } from 'ioredis';

/** Finds the master by asking the Sentinels; their news of another master count only while it is connected to one. */
export class PatientSentinelConnector extends SentinelConnector {
  /** ioredis gives the options of the connection. */
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
  }

  override connect(
    ...args: Parameters<SentinelConnector['connect']>
  ): ReturnType<SentinelConnector['connect']> {
    // The connection before this one has left it here; the next gets its own.
    const detector: { cleanup(): void } | null = Reflect.get(this, 'failoverDetector');
    detector?.cleanup();
    return super.connect(...args);
  }
}
