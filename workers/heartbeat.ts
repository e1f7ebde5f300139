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
  let stopped = false;
  let telling = Promise.resolve();
  const tell = async () => {
    try {
      const described = await describe();
      const beat: PoolBeat = stopped ? { ...described, state: 'stopped' } : described;
      await telegraph.publish(topics.pool(beat.provider, beat.worker), beat);
    } catch (err) {
      log.debug({ err }, 'beat not told');
    }
  };
  // One after the other: a beat that was late must not follow the goodbye.
  const beat = () => {
    telling = telling.then(tell);
    return telling;
  };
  const timer = setInterval(() => stopped || void beat(), intervalMs);
  return {
    started: beat(),
    beat: () => stopped || void beat(),
    stop: () => {
      clearInterval(timer);
      stopped = true;
      return beat();
    },
  };
}
