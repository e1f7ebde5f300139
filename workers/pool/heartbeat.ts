import { hostname } from 'node:os';
import { maxBreakers, type PoolHeartbeat, topics } from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { countAll, countAllWaiting } from '../../shared/queue/add-attempt.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { release } from '../../shared/runtime/program.js';
import { withTimeout } from '../../shared/runtime/retry.js';
import type { Gate } from '../gate/gate.js';
import type { Load } from '../job/running-jobs.js';
import type { Provider } from '../providers/provider.js';
import type { Backlog, CallRecord, ServiceTimes } from './backlog.js';
import type { LiveSettings } from './live-settings.js';
import type { ClockGuard, PoolThrottle } from './pool-throttle.js';

interface HeartbeatDeps {
  relay: Pick<Relay, 'broadcast'>;
  worker: string;
  log: Log;
  /** How often it is published, in milliseconds; by default once a second. */
  everyMs?: number;
}

/** Gives the state of a pool at this moment. Rejects when the store is unavailable. */
type DescribePool = () => Promise<PoolHeartbeat>;

const intervalMs = 1000;
/** How long a pool may take to describe itself. */
const describeTimeoutMs = 1000;
/** Longer than a timer that is on time and the answers of the store take: the same state is not sent twice a second. */
const lateAfterMs = 1500;
/** How long `stopped` waits for a heartbeat that is being published, so that it is not overtaken. */
const stopTimeoutMs = 200;
/** A turn that lasts for longer is not worth more messages. */
const maxUnanswered = 30;

/**
 * Publishes the states of this process's pools to every API process, once a second and after changes. One heartbeat is
 * published at a time: none wait behind one that hangs, but a change in the meantime is published after it.
 */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  /** The last heartbeat of each running pool; undefined before the first. */
  readonly #pools = new Map<DescribePool, PoolHeartbeat | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #hasChanged = false;
  #sentAt = performance.now();
  /** Late ones that the store has not answered. */
  #unanswered = 0;
  #publishing: Promise<void> | undefined;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** Adds a pool. Resolves once a heartbeat with it has been published, or could not be. */
  start(describe: DescribePool): Promise<void> {
    this.#pools.set(describe, undefined);
    this.#timer ??= setInterval(() => void this.#beat(), this.#deps.everyMs ?? intervalMs);
    return this.publish();
  }

  /** Publishes a change now instead of at the next second. */
  publish(): Promise<void> {
    this.#hasChanged = true;
    return this.#beat();
  }

  /**
   * Publishes the last states again if the timer is late; for turns of the event loop that may take long. New states,
   * and the answer to the message before, need answers of the store, which are read in the next turn.
   */
  publishIfLate(): void {
    const isLate = performance.now() - this.#sentAt > lateAfterMs;
    if (!isLate || this.#unanswered >= maxUnanswered) return;
    this.#unanswered += 1;
    void this.#send([...this.#pools.values()]).finally(() => {
      this.#unanswered -= 1;
    });
  }

  /** Publishes that the pool is `stopped`, and nothing of it after that. */
  async stop(describe: DescribePool): Promise<void> {
    const last = this.#pools.get(describe);
    this.#pools.delete(describe);
    if (this.#pools.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (this.#publishing) await withTimeout(stopTimeoutMs, this.#publishing).catch(() => undefined);
    const state = last ?? (await describe().catch((error) => this.#logFailure(error)));
    await this.#send([state && { ...state, state: 'stopped' }]);
  }

  #beat(): Promise<void> {
    this.#publishing ??= this.#publishChanges().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  async #publishChanges(): Promise<void> {
    do {
      this.#hasChanged = false;
      await Promise.all([...this.#pools.keys()].map((describe) => this.#describe(describe)));
      await this.#send([...this.#pools.values()]);
    } while (this.#hasChanged && this.#pools.size > 0);
  }

  /** One pool that cannot be described in time does not keep back the others: its last state stands in. */
  async #describe(describe: DescribePool): Promise<void> {
    try {
      const state = await withTimeout(describeTimeoutMs, describe());
      if (this.#pools.has(describe)) this.#pools.set(describe, state);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  async #send(states: readonly (PoolHeartbeat | undefined)[]): Promise<void> {
    const { relay, worker } = this.#deps;
    const pools = states.filter((state) => state !== undefined);
    if (pools.length === 0) return;
    this.#sentAt = performance.now();
    await relay
      .broadcast(topics.processes, { v: writtenVersion, worker, pools })
      .catch((error) => this.#logFailure(error));
  }

  #logFailure(err: unknown): undefined {
    this.#deps.log.debug({ err }, 'heartbeat not published');
  }
}

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
