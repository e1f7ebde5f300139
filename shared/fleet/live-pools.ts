import { type ProviderId, providerIds, type Target } from '../contracts/contract.js';
import type { ConcurrencySuggestion } from '../contracts/fleet-contract.js';
import { Failure } from '../failures.js';
import { isModelAllowed } from '../models/model-names.js';
import { type ModelBreaker, type PoolHeartbeat, topics } from '../protocol/messages.js';
import { type PoolOverrides, type ProviderSettings, settingsRecordSchema } from '../protocol/settings.js';
import type { Relay } from '../queue/relay.js';
import { type HeardPool, type Heartbeats, silence } from './heartbeats.js';
import { estimateWaitMs, type LivePool, type NewJobPosition } from './wait-estimate.js';

/** The user and the kind of a job: each provider has its own shares of users, and its asynchronous chats others. */
export interface JobOwner {
  readonly provider: ProviderId;
  /** Id of the user. */
  readonly user: string;
  readonly isAsync: boolean;
}

/** When a job has to be done, by which model, and where it would stand among those of this process. */
interface JobRequirements extends Pick<NewJobPosition, 'own' | 'level'> {
  timeoutMs: number;
  /** The model that the request names, if it does. */
  model: string | undefined;
  /** Whether it only has to begin by then. */
  isStream?: boolean;
}

/**
 * The pools by their last heartbeats, as this API process knows them. Until every live worker must have sent one, and
 * again after an outage of the store, a provider without a known worker is assumed to have one.
 */
export class LivePools {
  readonly #heartbeats: Heartbeats;
  /** The settings that operators have made. */
  readonly settings = new FleetSettings();

  constructor(heartbeats: Heartbeats) {
    this.#heartbeats = heartbeats;
  }

  /** How many jobs all pools can run at once, but for abandoned ones; undefined while none is known. */
  totalConcurrency(): number | undefined {
    const totals = providerIds.flatMap((provider) => {
      const pools = this.#knownOf(provider);
      if (pools.length === 0) return [];
      const places = pools.reduce((total, { heartbeat }) => total + heartbeat.concurrency, 0);
      return Math.min(places, this.settings.of(provider).globalConcurrency ?? places);
    });
    return totals.length === 0 ? undefined : totals.reduce((total, places) => total + places, 0);
  }

  /**
   * Throws unless a new job would be done in time, or begun in time if it is a stream:
   * - `provider_unavailable` when no live worker would take it or call its model for this user, or when operators drain
   *   the provider. Pools that operators have paused count as if they went on now;
   * - `invalid_request` when no pool may call the model it names, or has a default one if it names none;
   * - `overloaded` when the wait estimated from the backlog is longer than `timeoutMs`, and for seven seconds after the
   *   last live worker fell silent while it was full;
   * - `provider_rate_limited` when it is only so because every pool holds the model back for its provider's limits.
   */
  admit({ provider, user, isAsync }: JobOwner, required: JobRequirements): void {
    const { timeoutMs, model, isStream = false, own, level } = required;
    const { intake, ...limits } = this.settings.of(provider);
    if (intake === 'draining') throw new Failure('provider_unavailable', { provider });
    const live = this.#livePools(provider, model, user);
    if (live.length === 0 && this.#heartbeats.mayHaveMissed) return;
    if (live.length === 0 && this.#wasFull({ provider, model }))
      throw new Failure('overloaded', { provider, retryAfterMs: silence.counts });
    const able = poolsFor(model, { provider, live });
    const newcomer = { own, isAsync, level, isStream };
    const waitMs = estimateWaitMs(able, newcomer, limits);
    if (waitMs <= timeoutMs) return;
    const heldMs = Math.min(...able.map((pool) => pool.heldMs));
    if (heldMs > 0 && waitMs - heldMs <= timeoutMs)
      throw new Failure('provider_rate_limited', { provider, retryAfterMs: heldMs });
    throw new Failure('overloaded', { provider, retryAfterMs: waitMs - timeoutMs });
  }

  /** Whether a live pool takes jobs of the provider for the model, or may, as long as nothing is known of its pools. */
  isServed({ provider, model }: Target): boolean {
    if (this.settings.of(provider).intake === 'draining') return false;
    const live = this.#livePools(provider, model);
    if (live.length === 0) return this.#heartbeats.mayHaveMissed;
    return live.some((pool) => pool.state !== 'paused' && serves(pool, model));
  }

  /** The model that is meant: the one by default where none is named; undefined while that is not known. */
  modelOf({ provider, model }: Target): string | undefined {
    return model ?? this.#livePools(provider, model).find((pool) => pool.defaultModel)?.defaultModel;
  }

  /** Whether all its live pools take no jobs at the moment; false while none is known. */
  isPaused({ provider, model }: Target): boolean {
    const live = this.#livePools(provider, model);
    return live.length > 0 && live.every(({ state }) => state === 'paused');
  }

  /** Whether no pool takes its waiting jobs: all are paused, or silent for longer than an outage would explain. */
  isAbandoned(target: Target): boolean {
    const { provider } = target;
    if (this.#liveOf(provider).length > 0) return this.isPaused(target);
    return this.#heartbeats.silentMs(provider) > silence.abandoned;
  }

  /** The live pools as this user meets them: a pool may refuse one user alone. */
  #livePools(provider: ProviderId, model: string | undefined, user?: string): LivePool[] {
    return this.#liveOf(provider).map((pool) =>
      toLivePool(pool.heartbeat, { model, user, ageMs: this.#heartbeats.ageMs(pool) }),
    );
  }

  /** Whether a worker for the model that has just fallen silent was full: then it is more likely late than gone. */
  #wasFull({ provider, model }: { provider: ProviderId; model: string | undefined }): boolean {
    const known = this.#knownOf(provider);
    return known.some(
      ({ heartbeat }) => heartbeat.inFlight >= heartbeat.concurrency && serves(heartbeat, model),
    );
  }

  #liveOf(provider: ProviderId): HeardPool[] {
    return this.#heartbeats.within(silence.counts, provider);
  }

  /** With those that have just fallen silent. */
  #knownOf(provider: ProviderId): HeardPool[] {
    return this.#heartbeats.within(silence.abandoned, provider);
  }
}

/** The live pools that would call the model; throws as `LivePools.admit` when there is none. */
function poolsFor(
  model: string | undefined,
  { provider, live }: { provider: ProviderId; live: readonly LivePool[] },
): LivePool[] {
  const unpaused = live.filter((pool) => !refusesJobs(pool));
  if (unpaused.length === 0) throw new Failure('provider_unavailable', { provider });
  if (!unpaused.some((pool) => serves(pool, model))) throw modelNotAllowed(provider);
  const closed = unpaused.filter(({ openForMs }) => openForMs === 0);
  if (closed.length > 0) return closed;
  const retryAfterMs = Math.min(...unpaused.map(({ openForMs }) => openForMs));
  throw modelFailing({ provider, model: model ?? unpaused[0]?.defaultModel }, retryAfterMs);
}

/** A paused provider keeps its waiting jobs. */
const refusesJobs = ({ state, pausedBy }: PoolHeartbeat): boolean =>
  state === 'paused' && pausedBy !== 'operator';

const serves = (heartbeat: PoolHeartbeat, model: string | undefined): boolean =>
  model === undefined ? heartbeat.defaultModel !== undefined : isModelAllowed(model, heartbeat);

/** All entries count that concern the model or the account, and this user: they hold independently of each other. */
function toLivePool(
  heartbeat: PoolHeartbeat,
  { model, user, ageMs }: { model: string | undefined; user: string | undefined; ageMs: number },
): LivePool {
  const { breakers = [], defaultModel } = heartbeat;
  const concerned = new Set([null, model ?? defaultModel]);
  const leftMs = (ms = 0) => Math.max(0, ms - ageMs);
  const longestMs = (state: ModelBreaker['state']) => {
    const found = breakers.filter(
      (each) => each.state === state && concerned.has(each.model) && [undefined, user].includes(each.user),
    );
    return leftMs(Math.max(0, ...found.map(({ nextProbeMs }) => nextProbeMs)));
  };
  return {
    ...heartbeat,
    heldMs: longestMs('limited'),
    rateLeftMs: leftMs(heartbeat.rateLeftMs),
    openForMs: longestMs('open'),
  };
}

/** For a request that names a model that callers may not use, or none to a provider without a default one. */
export const modelNotAllowed = (provider: ProviderId): Failure =>
  new Failure('invalid_request', {
    provider,
    detail:
      'X-LLM-Model must name a model that may be used here; it may be absent only where the provider has a default model.',
    errors: [{ pointer: 'X-LLM-Model', detail: 'must name a model that may be used here' }],
  });

/** For a request whose model, by its checked name, has an open breaker; with the time until its next call. */
export const modelFailing = ({ provider, model }: Target, retryAfterMs: number): Failure =>
  new Failure('provider_unavailable', {
    provider,
    retryAfterMs,
    ...(model !== undefined && {
      model,
      detail: `${provider}/${model} is failing; the next try is in ${Math.ceil(retryAfterMs / 1000)} s.`,
    }),
  });

const none: PoolOverrides = {};

/** The settings that operators have made for each provider, as far as this API process knows. */
export class FleetSettings {
  readonly #records = new Map<ProviderId, ProviderSettings>();

  /** Takes over what is published from now on. */
  follow(relay: Pick<Relay, 'subscribe'>): Promise<void> {
    return relay.subscribe(topics.allSettings, settingsRecordSchema, (record) => this.apply(record));
  }

  /** Takes over the settings unless those that are known are as new or newer. */
  apply(record: ProviderSettings): void {
    const known = this.#records.get(record.provider);
    if (known === undefined || record.version > known.version) this.#records.set(record.provider, record);
  }

  /** The settings that replace the environment; empty for a provider without any. */
  of(provider: ProviderId): PoolOverrides {
    return this.#records.get(provider)?.overrides ?? none;
  }

  recordOf(provider: ProviderId): ProviderSettings | undefined {
    return this.#records.get(provider);
  }
}

type Stats = NonNullable<PoolHeartbeat['service']>;

/** Fewer say nothing of how many there will be. */
const minJobs = 30;
/** Five minutes, of which the oldest ten seconds may be forgotten: a load that has just begun says too little. */
const minOverMs = 290_000;
/** Arrivals come in bursts: at the mean itself a queue would grow without end. */
const headroom = 1.3;
/** A valid setting, for every heartbeat. */
const maxConcurrency = 1_000_000;

/**
 * The concurrency that a provider's live workers need by Little's law. Undefined while too few jobs have ended, in the
 * first five minutes, and where more jobs are in flight than it would allow.
 */
export function suggestConcurrency(heartbeats: readonly PoolHeartbeat[]): ConcurrencySuggestion | undefined {
  const all = heartbeats.flatMap(({ service }) => service ?? []);
  const sum = (pick: (stats: Stats) => number) => all.reduce((total, stats) => total + pick(stats), 0);
  const jobs = sum(({ count }) => count);
  const overMs = Math.max(0, ...all.map((stats) => stats.overMs));
  if (jobs < minJobs || overMs < minOverMs) return undefined;
  const mean = (pick: (stats: Stats) => number) => sum((stats) => stats.count * pick(stats)) / jobs;
  const meanMs = mean((stats) => stats.meanMs);
  const endedPerSecond = sum(({ count, overMs }) => count / overMs) * 1000;
  const arrivalsPerSecond = Math.max(0, endedPerSecond + growthPerSecond(heartbeats));
  const wanted = Math.ceil(arrivalsPerSecond * (meanMs / 1000) * headroom);
  const concurrency = Math.max(1, Math.min(wanted, maxConcurrency));
  const perWorker = Math.ceil(concurrency / heartbeats.length);
  if (heartbeats.some(({ inFlight }) => inFlight > perWorker)) return undefined;
  return {
    concurrency,
    perWorker,
    arrivalsPerSecond: Number(arrivalsPerSecond.toPrecision(3)),
    meanMs: Math.round(meanMs),
    p50Ms: Math.round(mean(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...all.map(({ p99Ms }) => p99Ms)),
    jobs,
    overMs,
  };
}

/** The growth of the queue in a second, by the worker that has run longest: all see the same queue. */
function growthPerSecond(heartbeats: readonly PoolHeartbeat[]): number {
  const [longest] = heartbeats.toSorted((a, b) => (b.service?.overMs ?? 0) - (a.service?.overMs ?? 0));
  const { waitingBefore, overMs = 1 } = longest?.service ?? {};
  if (longest === undefined || waitingBefore === undefined) return 0;
  const waiting = longest.waiting + (longest.waitingAsync ?? 0);
  return ((waiting - waitingBefore) / overMs) * 1000;
}
