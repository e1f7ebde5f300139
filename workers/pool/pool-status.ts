import type { PoolSettings } from '../../shared/config/pool-settings.js';
import type { ModelBreaker, PoolHeartbeat } from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { countAll, type WaitingByLevel } from '../../shared/queue/priority.js';
import type { Breaker } from '../job/breaker.js';
import type { Circuits } from '../job/circuits.js';
import type { LoadTracker } from '../job/load-tracker.js';
import type { Slots } from '../job/slots.js';
import type { Provider } from '../providers/provider.js';
import type { Backlog } from './backlog.js';
import type { ClockGuard } from './clock-guard.js';
import type { PoolThrottle } from './pool-throttle.js';

interface DescribedPool {
  provider: Pick<Provider, 'id'>;
  settings: PoolSettings;
  workerName: string;
  account: Pick<Breaker, 'state' | 'nextProbeMs'>;
  circuits: Pick<Circuits, 'describe'>;
  slots: Pick<Slots, 'away'>;
  clock: Pick<ClockGuard, 'isOff'>;
  throttle: Pick<PoolThrottle, 'concurrency'>;
  load: LoadTracker;
  backlog: Pick<Backlog, 'count'>;
}

const poolStates = { closed: 'serving', 'half-open': 'probing', open: 'paused' } as const;

/** How a pool fares at this moment. Rejects when the store cannot be asked. */
export async function describePool({
  provider,
  settings,
  workerName,
  account,
  circuits,
  slots,
  clock,
  throttle,
  load,
  backlog,
}: DescribedPool): Promise<PoolHeartbeat> {
  const state = () => (clock.isOff ? 'paused' : poolStates[account.state]);
  // Who waits for a model has no part in how long the others wait.
  const inFlight = () => load.inFlight - slots.away;
  const hasRoom = state() !== 'paused' && inFlight() < throttle.concurrency;
  const waiting = await backlog.count({ hasRoom });
  // The rest is read after the wait for the store: a breaker may have opened meanwhile.
  const breakers = [...describeAccount(account), ...circuits.describe()];
  return {
    v: writtenVersion,
    provider: provider.id,
    worker: workerName,
    state: state(),
    concurrency: throttle.concurrency,
    inFlight: inFlight(),
    ...describeWaiting(waiting),
    meanJobMs: load.meanJobMs,
    hasDefaultModel: settings.model !== undefined,
    ...(settings.model !== undefined && { defaultModel: settings.model }),
    ...(settings.models && { models: [...settings.models] }),
    ...(load.oldestJobMs !== undefined && { oldestJobMs: load.oldestJobMs }),
    ...(breakers.length > 0 && { breakers }),
  };
}

function describeAccount({ state, nextProbeMs }: DescribedPool['account']): ModelBreaker[] {
  return state === 'closed' ? [] : [{ model: null, state, nextProbeMs: Math.ceil(nextProbeMs) }];
}

type Waiting = Pick<PoolHeartbeat, 'waiting' | 'waitingAsync' | 'waitingByLevel' | 'waitingAsyncByLevel'>;

function describeWaiting({ waitedFor, async }: WaitingByLevel): Waiting {
  const asyncCount = countAll(async);
  const used = { waitedFor: trimmed(waitedFor), async: trimmed(async) };
  return {
    waiting: countAll(waitedFor),
    ...(asyncCount > 0 && { waitingAsync: asyncCount }),
    ...(used.waitedFor.length > 1 && { waitingByLevel: used.waitedFor }),
    ...(used.async.length > 1 && { waitingAsyncByLevel: used.async }),
  };
}

/** Without the empty levels at its end. */
const trimmed = (byLevel: readonly number[]): number[] =>
  byLevel.slice(0, byLevel.findLastIndex((count) => count > 0) + 1);
