import { hostname } from 'node:os';
import type { ModelRules } from '../../shared/model-names.js';
import { type ModelBreaker, maxBreakers, type PoolHeartbeat } from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { countAll, countAllWaiting, type WaitingByLevel } from '../../shared/queue/priority.js';
import { release } from '../../shared/runtime/release.js';
import type { Breaker } from '../job/breaker.js';
import type { CallTimes } from '../job/call-times.js';
import type { Circuits } from '../job/circuits.js';
import type { Load } from '../job/running-jobs.js';
import type { Provider } from '../providers/provider.js';
import type { Backlog } from './backlog.js';
import type { ClockGuard } from './clock-guard.js';
import type { LivePoolSettings, LiveSettings } from './live-settings.js';
import type { PoolThrottle } from './pool-throttle.js';

interface DescribedPool {
  provider: Pick<Provider, 'id'>;
  settings: Pick<LiveSettings, 'current' | 'version' | 'configured'>;
  workerName: string;
  account: Pick<Breaker, 'state' | 'nextProbeMs' | 'reason'>;
  circuits: Pick<Circuits, 'describe'>;
  clock: Pick<ClockGuard, 'isOff'>;
  throttle: Pick<PoolThrottle, 'concurrency' | 'isTaking'>;
  load: () => Pick<Load, 'inFlight' | 'parked' | 'oldestJobMs'>;
  times: Pick<CallTimes, 'meanMs' | 'calls' | 'jobs' | 'lastError' | 'recordWaiting'>;
  backlog: Pick<Backlog, 'count' | 'rateLeftMs'>;
}

const poolStates = { closed: 'serving', 'half-open': 'probing', open: 'paused' } as const;

/** The state of a pool at this moment. Rejects when the store is unavailable. */
export async function describePool({
  provider,
  settings,
  workerName,
  account,
  circuits,
  clock,
  throttle,
  load,
  times,
  backlog,
}: DescribedPool): Promise<PoolHeartbeat> {
  const state = () => (throttle.isTaking ? poolStates[account.state] : 'paused');
  // Parked jobs do not make the others wait longer.
  const inFlight = () => load().inFlight - load().parked;
  const hasRoom = throttle.isTaking && !isLimited(settings.current) && inFlight() < throttle.concurrency;
  const { rate } = settings.current;
  const [waiting, rateLeftMs] = await Promise.all([
    backlog.count({ hasRoom }),
    rate ? backlog.rateLeftMs(rate.max) : 0,
  ]);
  times.recordWaiting(countAllWaiting(waiting));
  // The rest is read after the wait for the store: a breaker may have opened, or the settings changed, meanwhile.
  const { model: defaultModel, models, environment, isSimulated } = settings.current;
  const { oldestJobMs } = load();
  const breakers = [...describeAccount(account), ...circuits.describe()].slice(0, maxBreakers);
  return {
    v: writtenVersion,
    provider: provider.id,
    worker: workerName,
    state: state(),
    ...pausedBy({ account, clock, settings }),
    concurrency: throttle.concurrency,
    inFlight: inFlight(),
    ...describeWaiting(waiting),
    ...(rateLeftMs > 0 && { rateLeftMs }),
    meanJobMs: times.meanMs ?? 0,
    hasDefaultModel: defaultModel !== undefined,
    ...(defaultModel !== undefined && { defaultModel }),
    ...(models && { models: [...models] }),
    ...(environment && { environment: toMessage(environment) }),
    configured: settings.configured,
    ...(oldestJobMs !== undefined && { oldestJobMs }),
    ...(breakers.length > 0 && { breakers }),
    ...describeTimes(times),
    settingsVersion: settings.version,
    simulated: isSimulated ?? false,
    release,
    host: hostname(),
  };
}

const toMessage = ({ defaultModel, models }: ModelRules): PoolHeartbeat['environment'] => ({
  ...(defaultModel !== undefined && { defaultModel }),
  ...(models && { models: [...models] }),
});

/** A worker to which its queue's limit gives no job takes the queue for empty. */
const isLimited = ({ globalConcurrency, rate }: LivePoolSettings): boolean =>
  globalConcurrency !== undefined || rate !== undefined;

/** Undefined for a pool that takes jobs, or is paused by the breaker of its account. */
function pausedBy({
  account,
  clock,
  settings,
}: Pick<DescribedPool, 'account' | 'clock' | 'settings'>): { pausedBy: string } | undefined {
  if (account.state === 'open') return undefined;
  if (clock.isOff) return { pausedBy: 'clock' };
  return settings.current.intake === 'paused' ? { pausedBy: 'operator' } : undefined;
}

function describeAccount({ state, nextProbeMs, reason }: DescribedPool['account']): ModelBreaker[] {
  if (state === 'closed') return [];
  return [{ model: null, state, nextProbeMs: Math.ceil(nextProbeMs), ...(reason && { reason }) }];
}

function describeTimes({ calls, jobs: service, lastError }: DescribedPool['times']) {
  return {
    ...(calls && { calls }),
    ...(service && { service }),
    ...(lastError && { lastError }),
  };
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
