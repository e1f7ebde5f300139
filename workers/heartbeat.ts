import type { Log } from '../shared/log.js';
import { type PoolBeat, topics } from '../shared/messages.js';
import type { Telegraph } from '../shared/relay.js';

/** Tells every API process how a pool fares, so that they know at once where a request has no chance. */
export interface Heartbeat {
  /** Resolves once the first beat is on its way. */
  readonly started: Promise<void>;
  /** Tells now instead of at the next second. */
  beat(): void;
  /** Tells that the pool takes no more jobs, and nothing after that. */
  stop(): Promise<void>;
}

interface HeartbeatDeps {
  telegraph: Telegraph;
  /** How the pool fares at this moment. */
  describe: () => Promise<PoolBeat>;
  log: Log;
}

const intervalMs = 1000;

export function startHeartbeat({ telegraph, describe, log }: HeartbeatDeps): Heartbeat {
  const tell = async (changes: Partial<PoolBeat> = {}) => {
    try {
      const beat: PoolBeat = { ...(await describe()), ...changes };
      await telegraph.publish(topics.pool(beat.provider, beat.worker), beat);
    } catch (err) {
      log.debug({ err }, 'beat not told');
    }
  };
  const timer = setInterval(() => void tell(), intervalMs);
  const started = tell();
  return {
    started,
    beat: () => void tell(),
    stop: () => {
      clearInterval(timer);
      return tell({ state: 'stopped' });
    },
  };
}
