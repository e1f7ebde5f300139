import { type ProviderId, providerIds } from '../contract.js';
import { isFailing } from '../failing.js';
import type {
  FleetBreaker,
  FleetError,
  FleetFailing,
  FleetProvider,
  FleetWorker,
} from '../fleet-contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';

/** What is known of a provider's workers; how much there is to do the store alone can say. */
export type ServedProvider = Omit<FleetProvider, 'queue'>;

interface KnownWorker {
  readonly worker: FleetWorker;
  /** When it was last heard of, by the view's clock, and in milliseconds since the epoch. */
  readonly heardAt: number;
  readonly heardTime: number;
}

interface ViewOptions {
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
  /** The time, in milliseconds since the epoch. */
  time?: () => number;
}

/** Two heartbeats in a row have not come. */
const silentAfterMs = 2200;
/** A worker that has been silent for this long is shown no more. */
const shownMs = 60_000;
/** Whoever writes heartbeats of ever new workers must not fill the memory. */
const maxWorkers = 1000;
/** Names of models that are shown of a worker; admission knows all. */
const maxModels = 100;
/** Two ages of one moment differ by what their messages took to arrive. */
const sameMomentMs = 1000;

/** Best first. */
const states = ['serving', 'probing', 'paused'] as const;

/**
 * The workers as operators see them. It keeps those that have fallen silent for a minute, unlike `LivePools`, which forgets them
 * as soon as they do not count for admission any more.
 */
export class FleetView {
  readonly #now: () => number;
  readonly #time: () => number;
  /** When heartbeats began to arrive, or an outage of the store ended. */
  #since: number;
  readonly #workers = new Map<ProviderId, Map<string, KnownWorker>>();

  constructor({ now = () => performance.now(), time = Date.now }: ViewOptions = {}) {
    this.#now = now;
    this.#time = time;
    this.#since = now();
  }

  onHeartbeat(heartbeat: PoolHeartbeat): void {
    const workers = this.#workersOf(heartbeat.provider);
    this.#workers.set(heartbeat.provider, workers);
    const before = workers.get(heartbeat.worker)?.worker;
    workers.delete(heartbeat.worker);
    if (heartbeat.state === 'stopped') return;
    const heardTime = this.#time();
    const worker = describe(heartbeat, heartbeat.state, { heardTime, before });
    workers.set(heartbeat.worker, { worker, heardAt: this.#now(), heardTime });
    const [longestSilent] = workers.keys();
    if (workers.size > maxWorkers && longestSilent !== undefined) workers.delete(longestSilent);
  }

  /** To be called while the store is down: until heartbeats must have come again, silence means nothing. */
  recordOutage(): void {
    this.#since = this.#now();
  }

  /** Every provider, in their usual order. */
  providers(): ServedProvider[] {
    return providerIds.map((provider) => this.#describe(provider));
  }

  #describe(provider: ProviderId): ServedProvider {
    const workers = [...this.#workersOf(provider).values()].map((known) => this.#asOfNow(known));
    const live = workers.filter(({ state }) => state !== 'silent');
    const state = this.#stateOf(workers);
    const failing = state === 'serving' || state === 'probing' ? failingOf(live) : undefined;
    return {
      ...{ provider, state },
      ...(failing && { failing }),
      kind: kindOf(live.length > 0 ? live : workers),
      concurrency: sumOf(live, 'concurrency'),
      inFlight: sumOf(live, 'inFlight'),
      workers: workers.sort((a, b) => (a.worker < b.worker ? -1 : 1)),
    };
  }

  #stateOf(workers: readonly FleetWorker[]): ServedProvider['state'] {
    const best = states.find((state) => workers.some((worker) => worker.state === state));
    if (best) return best;
    if (this.#now() - this.#since <= silentAfterMs) return 'unknown';
    return workers.length > 0 ? 'silent' : 'absent';
  }

  #asOfNow({ worker, heardAt, heardTime }: KnownWorker): FleetWorker {
    if (this.#now() - heardAt <= silentAfterMs) return worker;
    return { ...worker, state: 'silent', silentSince: new Date(heardTime).toISOString() };
  }

  /** Those that are still shown, the longest silent first. */
  #workersOf(provider: ProviderId): Map<string, KnownWorker> {
    const workers = this.#workers.get(provider) ?? new Map<string, KnownWorker>();
    for (const [name, { heardAt }] of workers) {
      if (this.#now() - heardAt <= shownMs) break;
      workers.delete(name);
    }
    return workers;
  }
}

/** By the last failure of all. */
function failingOf(live: readonly FleetWorker[]): FleetFailing | undefined {
  if (!isFailing(live.flatMap(({ calls }) => calls ?? []))) return undefined;
  const [last] = live.flatMap(({ lastError }) => lastError ?? []).toSorted((a, b) => (a.at < b.at ? 1 : -1));
  return last && { code: last.code, since: last.since };
}

/** Whatever heartbeats say, it is a number that JSON has. */
const sumOf = (workers: readonly FleetWorker[], field: 'concurrency' | 'inFlight'): number =>
  Math.min(
    workers.reduce((sum, worker) => sum + worker[field], 0),
    Number.MAX_SAFE_INTEGER,
  );

interface Moment {
  heardTime: number;
  /** What the worker said before. */
  before: FleetWorker | undefined;
}

function describe(
  heartbeat: PoolHeartbeat,
  state: Exclude<PoolHeartbeat['state'], 'stopped'>,
  moment: Moment,
): FleetWorker {
  const { worker, concurrency, inFlight, meanJobMs, oldestJobMs, breakers = [], lastError } = heartbeat;
  const { pausedBy, defaultModel, models, calls, simulated, settingsVersion, release, host } = heartbeat;
  const { before } = moment;
  return {
    worker,
    state,
    ...(pausedBy !== undefined && { pausedBy }),
    concurrency,
    inFlight,
    ...(oldestJobMs !== undefined && {
      oldestJobSince: timeOf(-oldestJobMs, moment, before?.oldestJobSince),
    }),
    meanJobMs: Math.round(meanJobMs),
    ...(defaultModel !== undefined && { defaultModel }),
    ...(models && { models: models.slice(0, maxModels) }),
    breakers: breakers.map((breaker) => describeBreaker(breaker, moment)),
    ...(calls && { calls: describeCalls(calls) }),
    ...(lastError && { lastError: describeError(lastError, moment) }),
    ...(simulated !== undefined && { simulated }),
    ...{ settingsVersion, release, host },
  };
}

function describeBreaker(
  { model, state, nextProbeMs, reason, user }: NonNullable<PoolHeartbeat['breakers']>[number],
  moment: Moment,
): FleetBreaker {
  const before = moment.before?.breakers.find((breaker) => breaker.model === model);
  return {
    model,
    state,
    ...(reason !== undefined && { reason }),
    ...(user !== undefined && { user }),
    ...(nextProbeMs > 0 && { nextProbeAt: timeOf(nextProbeMs, moment, before?.nextProbeAt) }),
    since: (before?.state === state && before.since) || timeOf(0, moment, undefined),
  };
}

function describeCalls({
  latencyMs,
  ...calls
}: NonNullable<PoolHeartbeat['calls']>): NonNullable<FleetWorker['calls']> {
  return { ...calls, ...(latencyMs && { latencyMs }) };
}

function describeError(
  { code, agoMs, sinceMs }: NonNullable<PoolHeartbeat['lastError']>,
  moment: Moment,
): FleetError {
  const before = moment.before?.lastError;
  return {
    code,
    at: timeOf(-agoMs, moment, before?.at),
    since: timeOf(-sinceMs, moment, before?.since),
  };
}

/** The greatest distance from now that a time may have: whatever a heartbeat says, it is a date. */
const maxDistanceMs = 1e12;

/** The time that is this far from now; the one that was given before when they mean the same moment. */
function timeOf(offsetMs: number, { heardTime }: Moment, before: string | undefined): string {
  const bounded = Math.max(-maxDistanceMs, Math.min(offsetMs, maxDistanceMs));
  const time = heardTime + bounded;
  if (before !== undefined && Math.abs(Date.parse(before) - time) < sameMomentMs) return before;
  return new Date(time).toISOString();
}

function kindOf(workers: readonly FleetWorker[]): ServedProvider['kind'] {
  const kinds = new Set(workers.flatMap(({ simulated }) => simulated ?? []));
  if (kinds.size === 2) return 'mixed';
  const [simulated] = kinds;
  if (simulated === undefined) return 'unknown';
  return simulated ? 'simulated' : 'real';
}
