import type { ProviderId, Target } from '../contract.js';
import { Failure } from '../failures.js';
import { isModelAllowed } from '../model-names.js';
import type { PoolHeartbeat } from '../protocol/messages.js';
import { FleetSettings } from './live-settings.js';
import { ModelList } from './models.js';
import { estimateWaitMs, type LivePool, type NewJobPosition } from './wait-estimate.js';

/** Whose job it is, and of which kind: each provider has its own shares of users, and its asynchronous chats others. */
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
  /** Whether anything is asked of the model beside the conversation. */
  hasParameters?: boolean;
}

interface LastHeartbeat {
  readonly heartbeat: PoolHeartbeat;
  /** When it arrived, by the registry's clock. */
  readonly at: number;
}

interface LivePoolsOptions {
  /** When heartbeats began to arrive, by `now`. */
  since: number;
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
}

/** Three missed heartbeats and a little: a worker that is silent for this long does not count. */
const heartbeatTtlMs = 3500;
/** After this silence of all its workers a queue counts as abandoned. */
const abandonedAfterMs = 2 * heartbeatTtlMs;

/**
 * What this API process knows of the pools: their last heartbeats. Until every live worker must
 * have sent a heartbeat, and again after an outage of the store, a provider without a known worker is assumed to have one.
 */
export class LivePools {
  /** The models that callers may name. */
  readonly models: ModelList;
  /** What operators have set. */
  readonly settings = new FleetSettings();
  readonly #now: () => number;
  readonly #heartbeats = new Map<ProviderId, Map<string, LastHeartbeat>>();
  /** When the last heartbeat of a provider's pools arrived. */
  readonly #heardAt = new Map<ProviderId, number>();
  #since: number;

  constructor({ since, now = () => performance.now() }: LivePoolsOptions) {
    this.#since = since;
    this.#now = now;
    this.models = new ModelList(now);
  }

  onHeartbeat(heartbeat: PoolHeartbeat): void {
    this.models.record(heartbeat);
    // Expired ones are dropped here as well: workers come and go under new names although nobody asks for anything.
    const workers = this.#knownOf(heartbeat.provider);
    this.#heartbeats.set(heartbeat.provider, workers);
    this.#heardAt.set(heartbeat.provider, this.#now());
    if (heartbeat.state === 'stopped') workers.delete(heartbeat.worker);
    else workers.set(heartbeat.worker, { heartbeat, at: this.#now() });
  }

  /** To be called when the store was found to be down: heartbeats that did not arrive meanwhile mean nothing. */
  recordOutage(): void {
    this.#since = this.#now();
  }

  /** How many jobs all pools can run at once, but for abandoned ones; undefined while none is known. */
  totalConcurrency(): number | undefined {
    const totals = [...this.#heartbeats.keys()].flatMap((provider) => {
      const pools = [...this.#knownOf(provider).values()];
      if (pools.length === 0) return [];
      const places = pools.reduce((total, { heartbeat }) => total + heartbeat.concurrency, 0);
      return Math.min(places, this.settings.of(provider).globalConcurrency ?? places);
    });
    return totals.length === 0 ? undefined : totals.reduce((total, places) => total + places, 0);
  }

  /** The last heartbeats of a provider's live workers; undefined as long as nothing is known of them. */
  heartbeatsOf(provider: ProviderId): PoolHeartbeat[] | undefined {
    const live = this.#liveOf(provider).map(({ heartbeat }) => heartbeat);
    return live.length === 0 && this.#now() - this.#since < heartbeatTtlMs ? undefined : live;
  }

  /**
   * Throws unless a new job would be done in time, or begun in time if it is a stream:
   * - `provider_unavailable` when no live worker would take it or call its model for this user, when operators drain
   *   the provider, or when a worker of 0.3 would ignore what is asked of the model. Pools that operators have paused
   *   count as if they went on now, because it is not known when they will;
   * - `invalid_request` when no pool may call the model it names, or has a default one if it names none;
   * - `overloaded` when the wait estimated from the backlog is longer than `timeoutMs`, and for seven seconds after the
   *   last live worker fell silent while it was full. Asynchronous jobs come after all others, and a user's after those
   *   that the user has outstanding;
   * - `provider_rate_limited` when it is only so because every pool holds the model back for its provider's limits.
   */
  admit({ provider, user, isAsync }: JobOwner, required: JobRequirements): void {
    const { timeoutMs, model, isStream = false, hasParameters, own, level } = required;
    const { intake, ...limits } = this.settings.of(provider);
    if (intake === 'draining') throw new Failure('provider_unavailable', { provider });
    const live = this.#livePools(provider, model, user);
    if (hasParameters && live.some(ignoresParameters))
      throw new Failure('provider_unavailable', { provider, detail: duringUpgrade });
    if (live.length === 0 && this.#now() - this.#since < heartbeatTtlMs) return;
    if (live.length === 0 && this.#wasFull({ provider, model }))
      throw new Failure('overloaded', { provider, retryAfterMs: heartbeatTtlMs });
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
  isServed({ provider, model }: Target, { hasParameters = false } = {}): boolean {
    if (this.settings.of(provider).intake === 'draining') return false;
    const live = this.#livePools(provider, model);
    if (hasParameters && live.some(ignoresParameters)) return false;
    if (live.length === 0) return this.#now() - this.#since < heartbeatTtlMs;
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

  /**
   * Whether no pool takes the jobs that wait for it: all its pools are paused, or have been silent for so long that the
   * next heartbeats after an outage of the store would have come.
   */
  isAbandoned(target: Target): boolean {
    const { provider } = target;
    if (this.#liveOf(provider).length > 0) return this.isPaused(target);
    const heardAt = Math.max(this.#heardAt.get(provider) ?? this.#since, this.#since);
    return this.#now() - heardAt > abandonedAfterMs;
  }

  /** As this user sees them: a breaker may refuse one user alone. */
  #livePools(provider: ProviderId, model: string | undefined, user?: string): LivePool[] {
    return this.#liveOf(provider).map(({ heartbeat, at }) =>
      toLivePool(heartbeat, { model, user, ageMs: this.#now() - at }),
    );
  }

  /** Whether a worker for the model that has just fallen silent was full: then it is more likely late than gone. */
  #wasFull({ provider, model }: { provider: ProviderId; model: string | undefined }): boolean {
    const known = [...this.#knownOf(provider).values()];
    return known.some(
      ({ heartbeat }) => heartbeat.inFlight >= heartbeat.concurrency && serves(heartbeat, model),
    );
  }

  /** The workers whose last heartbeat has not expired. */
  #liveOf(provider: ProviderId): LastHeartbeat[] {
    return [...this.#knownOf(provider).values()].filter(({ at }) => this.#now() - at <= heartbeatTtlMs);
  }

  /** The workers that do not count as gone yet, by name. */
  #knownOf(provider: ProviderId): Map<string, LastHeartbeat> {
    const workers = this.#heartbeats.get(provider) ?? new Map<string, LastHeartbeat>();
    for (const [name, { at }] of workers) if (this.#now() - at > abandonedAfterMs) workers.delete(name);
    return workers;
  }
}

/** Those of the live pools that would call the model; throws as `LivePools.admit` when there is none. */
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

/** What operators have paused goes on with what waits for it. */
const refusesJobs = ({ state, pausedBy }: PoolHeartbeat): boolean =>
  state === 'paused' && pausedBy !== 'operator';

/** A worker of 0.3, which does not say whether it is simulated: any worker of the provider may take a job. */
const ignoresParameters = ({ simulated }: PoolHeartbeat): boolean => simulated === undefined;

const duringUpgrade =
  'A worker of this provider runs an older release, which ignores what is asked of the model beside the conversation. Try again once it has been replaced.';

const serves = (heartbeat: PoolHeartbeat, model: string | undefined): boolean =>
  model === undefined ? heartbeat.defaultModel !== undefined : isModelAllowed(model, heartbeat);

function toLivePool(
  heartbeat: PoolHeartbeat,
  { model, user, ageMs }: { model: string | undefined; user: string | undefined; ageMs: number },
): LivePool {
  const called = model ?? heartbeat.defaultModel;
  const breaker = heartbeat.breakers?.find((each) => each.model === called && called !== undefined);
  const isOpen = breaker?.state === 'open' && (breaker.user === undefined || breaker.user === user);
  const leftMs = (ms = 0) => Math.max(0, ms - ageMs);
  return {
    ...heartbeat,
    heldMs: breaker?.state === 'limited' ? leftMs(breaker.nextProbeMs) : 0,
    rateLeftMs: leftMs(heartbeat.rateLeftMs),
    openForMs: isOpen ? leftMs(breaker.nextProbeMs) : 0,
  };
}

/** For a request that names a model that callers may not use, or none to a provider without a default one. */
export const modelNotAllowed = (provider: ProviderId): Failure =>
  new Failure('invalid_request', {
    provider,
    detail:
      'X-LLM-Model must name a model that may be used here; only a provider with a default model can do without.',
    errors: [{ pointer: 'X-LLM-Model', detail: 'must name a model that may be used here' }],
  });

/**
 * For a request whose model has an open breaker, with the time until its next call in milliseconds. The name has passed
 * the check of models; without one the text says less.
 */
export const modelFailing = ({ provider, model }: Target, retryAfterMs: number): Failure =>
  new Failure('provider_unavailable', {
    ...{ provider, retryAfterMs },
    ...(model !== undefined && {
      model,
      detail: `${provider}/${model} is failing; the next try is in ${Math.ceil(retryAfterMs / 1000)} s.`,
    }),
  });
