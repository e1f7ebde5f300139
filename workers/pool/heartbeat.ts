import { type PoolBeat, topics } from '../../shared/protocol/messages.js';
import type { Telegraph } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { within } from '../../shared/runtime/with-timeout.js';

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
/** The goodbye waits this long for a beat that is on its way, lest it be overtaken; one that hangs has had its chance. */
const courtesyMs = 200;

/** One beat at a time: behind one that hangs no others wait, but a change meanwhile is told once it is over. */
export function startHeartbeat({ telegraph, describe, log }: HeartbeatDeps): Heartbeat {
  let stopped = false;
  let changed = false;
  let last: PoolBeat | undefined;
  let telling: Promise<void> | undefined;
  const publish = (beat: PoolBeat) => telegraph.publish(topics.pool(beat.provider, beat.worker), beat);
  const tell = async () => {
    do {
      changed = false;
      last = await describe();
      if (!stopped) await publish(last);
    } while (changed && !stopped);
  };
  const notTold = (err: unknown) => log.debug({ err }, 'beat not told');
  const beat = (): Promise<void> => {
    telling ??= tell()
      .catch(notTold)
      .finally(() => {
        telling = undefined;
      });
    return telling;
  };
  const sayGoodbye = async () => {
    if (telling) await within(courtesyMs, telling).catch(() => undefined);
    await publish({ ...(last ?? (await describe())), state: 'stopped' });
  };
  const timer = setInterval(() => stopped || void beat(), intervalMs);
  return {
    started: beat(),
    beat: () => {
      changed = true;
      if (!stopped) void beat();
    },
    stop: () => {
      clearInterval(timer);
      stopped = true;
      return sayGoodbye().catch(notTold);
    },
  };
}
