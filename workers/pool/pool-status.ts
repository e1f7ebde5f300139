import { hostname } from 'node:os';
import { maxBreakers, type PoolHeartbeat } from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { countAll, countAllWaiting } from '../../shared/queue/priority.js';
import { release } from '../../shared/runtime/release.js';
import type { Gate } from '../gate/gate.js';
import type { Load } from '../job/running-jobs.js';
import type { Provider } from '../providers/provider.js';
import type { Backlog } from './backlog.js';
import type { CallRecord } from './call-record.js';
import type { ClockGuard } from './clock-guard.js';
import type { LiveSettings } from './live-settings.js';
import type { PoolThrottle } from './pool-throttle.js';
import type { ServiceTimes } from './service-times.js';

interface DescribedPool {
  provider: Pick<Provider, 'id'>;
  settings: Pick<LiveSettings, 'current' | 'version' | 'configured'>;
  workerName: string;
  gate: Pick<Gate, 'account' | 'describe' | 'parked'>;
  clock: Pick<ClockGuard, 'isOff'>;
  throttle: Pick<PoolThrottle, 'concurrency' | 'isTaking'>;
  load: () => Pick<Load, 'inFlight' | 'oldestJobMs'>;
  calls: Pick<CallRecord, 'stats' | 'lastError'>;
  times: Pick<ServiceTimes, 'meanMs' | 'stats' | 'recordWaiting'>;
  backlog: Pick<Backlog, 'count' | 'rateLeftMs'>;
}

const poolStates = { closed: 'serving', 'half-open': 'probing', open: 'paused' } as const;

/** The state of a pool at this moment. Rejects when the store is unavailable. */
export async function describePool(pool: DescribedPool): Promise<PoolHeartbeat> {
  const { provider, settings, workerName, gate, throttle, load, calls, times, backlog } = pool;
  const state = () => (throttle.isTaking ? poolStates[gate.account.state] : 'paused');
  // Parked jobs do not make the others wait longer.
  const inFlight = () => load().inFlight - gate.parked;
  const { rate, globalConcurrency } = settings.current;
  // A worker to which its queue's limit gives no job takes the queue for empty.
  const isLimited = globalConcurrency !== undefined || rate !== undefined;
  const hasRoom = throttle.isTaking && !isLimited && inFlight() < throttle.concurrency;
  const [{ waitedFor, async }, rateLeftMs] = await Promise.all([
    backlog.count({ hasRoom }),
    rate ? backlog.rateLeftMs(rate) : 0,
  ]);
  times.recordWaiting(countAllWaiting({ waitedFor, async }));
  // The rest is read after the wait for the store: a breaker may have opened, or the settings changed, meanwhile.
  const { model: defaultModel, models, environment, isSimulated = false } = settings.current;
  const breakers = gate.describe().slice(0, maxBreakers);
  return {
    v: writtenVersion,
    provider: provider.id,
    worker: workerName,
    state: state(),
    pausedBy: pausedBy(pool),
    concurrency: throttle.concurrency,
    inFlight: inFlight(),
    waiting: countAll(waitedFor),
    waitingAsync: countAll(async) || undefined,
    waitingByLevel: used(waitedFor),
    waitingAsyncByLevel: used(async),
    rateLeftMs: rateLeftMs || undefined,
    meanJobMs: times.meanMs ?? 0,
    defaultModel,
    models: models && [...models],
    environment: environment && { ...environment, models: environment.models && [...environment.models] },
    configured: settings.configured,
    oldestJobMs: load().oldestJobMs,
    breakers: breakers.length > 0 ? breakers : undefined,
    calls: calls.stats,
    service: times.stats,
    lastError: calls.lastError,
    settingsVersion: settings.version,
    simulated: isSimulated,
    release,
    host: hostname(),
  };
}

/** Undefined for a pool that takes jobs, or is paused by the breaker of its account. */
function pausedBy({ gate, clock, settings }: DescribedPool): string | undefined {
  if (gate.account.state === 'open') return undefined;
  if (clock.isOff) return 'clock';
  return settings.current.intake === 'paused' ? 'operator' : undefined;
}

/** The levels without the empty ones at the end; undefined when there is no job but at the first level. */
function used(byLevel: readonly number[]): number[] | undefined {
  const last = byLevel.findLastIndex((count) => count > 0);
  return last > 0 ? byLevel.slice(0, last + 1) : undefined;
}
