/*
 * Patch of ioredis 6.0.0: the sockets of its connectors, and the private `failoverDetector` of the one for Sentinels.
 * Gives: recovery. A socket with TLS may report two errors, of which ioredis hears the first: the second ended the
 * process. A connection was closed for good when a Sentinel told of a failover while it asked for the master.
 * Until: ioredis hears all errors (https://github.com/redis/ioredis/pull/962), and connects again after that.
 */
import { type SentinelConnectionOptions, SentinelConnector, type StandaloneConnectionOptions } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';

type Opening = ReturnType<SentinelConnector['connect']>;

const heard = async (opening: Opening) => (await opening).on('error', () => undefined);

export class PatientConnector extends StandaloneConnector {
  constructor(options: unknown) {
    super(options as StandaloneConnectionOptions);
  }

  override connect(...args: Parameters<StandaloneConnector['connect']>): Opening {
    return heard(super.connect(...args));
  }
}

/** Finds the master by asking the Sentinels; their news of another master count only while it is connected to one. */
export class PatientSentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
  }

  override connect(...args: Parameters<SentinelConnector['connect']>): Opening {
    // The connection before this one has left it here; the next gets its own.
    const detector: { cleanup(): void } | null = Reflect.get(this, 'failoverDetector');
    detector?.cleanup();
    return heard(super.connect(...args));
  }
}
