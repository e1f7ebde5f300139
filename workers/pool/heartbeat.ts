import { type PoolHeartbeat, topics } from '../../shared/protocol/messages.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';

/** Tells every API process how a pool fares, so that they know at once where a request has no chance. */
export interface Heartbeat {
  /** Resolves once the first heartbeat is on its way. */
  readonly started: Promise<void>;
  /** Tells now instead of at the next second. */
  publish(): void;
  /** Tells that the pool takes no more jobs, and nothing after that. */
  stop(): Promise<void>;
}

interface HeartbeatDeps {
  relay: Relay;
  /** How the pool fares at this moment. */
  describe: () => Promise<PoolHeartbeat>;
  log: Log;
}

const intervalMs = 1000;
/** The goodbye waits this long for a heartbeat that is on its way, lest it be overtaken; one that hangs has had its chance. */
const stopDelayMs = 200;

/** One heartbeat at a time: behind one that hangs no others wait, but a change meanwhile is told once it is over. */
export function startHeartbeat({ relay, describe, log }: HeartbeatDeps): Heartbeat {
  let stopped = false;
  let changed = false;
  let last: PoolHeartbeat | undefined;
  let telling: Promise<void> | undefined;
  const publish = (heartbeat: PoolHeartbeat) =>
    relay.publish(topics.pool(heartbeat.provider, heartbeat.worker), heartbeat);
  const tell = async () => {
    do {
      changed = false;
      last = await describe();
      if (!stopped) await publish(last);
    } while (changed && !stopped);
  };
  const notTold = (err: unknown) => log.debug({ err }, 'heartbeat not told');
  const heartbeat = (): Promise<void> => {
    telling ??= tell()
      .catch(notTold)
      .finally(() => {
        telling = undefined;
      });
    return telling;
  };
  const publishStopped = async () => {
    if (telling) await withTimeout(stopDelayMs, telling).catch(() => undefined);
    await publish({ ...(last ?? (await describe())), state: 'stopped' });
  };
  const timer = setInterval(() => stopped || void heartbeat(), intervalMs);
  return {
    started: heartbeat(),
    publish: () => {
      changed = true;
      if (!stopped) void heartbeat();
    },
    stop: () => {
      clearInterval(timer);
      stopped = true;
      return publishStopped().catch(notTold);
    },
  };
}
