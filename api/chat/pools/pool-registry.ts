import { isModelAllowed } from '../../../shared/config/allowed-models.js';
import type { ProviderId } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { type CountedJob, type JobOwner, OutstandingJobs } from './outstanding-jobs.js';
import { estimateWaitMs, type LivePool } from './wait-estimate.js';

/** What this API process knows of the pools, from their heartbeats. */
export interface PoolRegistry {
  onHeartbeat(heartbeat: PoolHeartbeat): void;
  /** To be called when the store was found away: what was not heard meanwhile tells nothing. */
  recordOutage(): void;
  /** Counts a job of our own as outstanding until it is released, and gives the level that it is added with. */
  recordAdded(owner: JobOwner): CountedJob;
  /** Jobs that all live pools can run at once, over all providers; undefined while none is known. */
  places(): number | undefined;
  /**
   * Throws `provider_unavailable` when no live worker would take the job or call its model, `overloaded` when the wait
   * predicted from the backlog is longer than `timeoutMs`, `provider_rate_limited` when it is only because the provider
   * makes every pool wait with this model, `invalid_request` when no pool has a model for it, or may be asked for the one
   * it names. An asynchronous request comes after all others, and what its user has outstanding already comes before it.
   */
  admit(owner: JobOwner, request: Admission): void;
}

interface Admission {
  timeoutMs: number;
  /** The model that the request names, if it does. */
  model: string | undefined;
}

interface LastHeartbeat {
  readonly heartbeat: PoolHeartbeat;
  readonly at: number;
}

/** Three missed heartbeats and a little: a worker that is silent this long does not count. */
const heartbeatTtlMs = 3500;

/**
 * `now` is a clock that never jumps, in milliseconds, and `since` when heartbeats began to arrive. Until every live worker must have been
 * heard of once, and again after an outage of the store, a pool of which nobody is known who goes on gets the benefit of
 * the doubt.
 */
export function createPoolRegistry(options: { since: number; now?: () => number }): PoolRegistry {
  const { now = () => performance.now() } = options;
  let { since } = options;
  const heartbeats = new Map<ProviderId, Map<string, LastHeartbeat>>();
  const outstanding = new OutstandingJobs();

  const heardOf = (provider: ProviderId): Map<string, LastHeartbeat> => {
    const workers = heartbeats.get(provider) ?? new Map<string, LastHeartbeat>();
    for (const [name, { at }] of workers) if (now() - at > heartbeatTtlMs) workers.delete(name);
    return workers;
  };
  const live = (provider: ProviderId, model: string | undefined): LivePool[] =>
    [...heardOf(provider).values()].map(({ heartbeat, at }) =>
      toLivePool(heartbeat, { model, ageMs: now() - at }),
    );

  return {
    onHeartbeat: (heartbeat) => {
      // Here as well: workers come and go under new names although nobody asks for anything.
      const workers = heardOf(heartbeat.provider);
      heartbeats.set(heartbeat.provider, workers);
      if (heartbeat.state === 'stopped') workers.delete(heartbeat.worker);
      else workers.set(heartbeat.worker, { heartbeat, at: now() });
    },
    recordOutage: () => {
      since = now();
    },
    recordAdded: (owner) => outstanding.add(owner),
    places: () => {
      const pools = [...heartbeats.keys()].flatMap((provider) => [...heardOf(provider).values()]);
      return pools.length === 0
        ? undefined
        : pools.reduce((total, { heartbeat }) => total + heartbeat.concurrency, 0);
    },
    admit: (owner, { timeoutMs, model }) => {
      const { provider, isAsync } = owner;
      const heartbeats = live(provider, model);
      const taking = heartbeats.filter(({ state }) => state !== 'paused');
      if (taking.length === 0) {
        if (heartbeats.length === 0 && now() - since < heartbeatTtlMs) return;
        throw new Failure('provider_unavailable', { provider });
      }
      if (!taking.some((pool) => serves(pool, model))) throw modelNotAllowed(provider);
      const calling = taking.filter(({ openForMs }) => openForMs === 0);
      if (calling.length === 0) throw unavailable(provider, taking);
      const waitMs = estimateWaitMs(calling, {
        own: outstanding.of(provider),
        isAsync,
        level: outstanding.nextLevel(owner),
      });
      if (waitMs <= timeoutMs) return;
      const heldMs = Math.min(...calling.map((pool) => pool.heldMs));
      if (heldMs > 0 && waitMs - heldMs <= timeoutMs)
        throw new Failure('provider_rate_limited', { provider, retryAfterMs: heldMs });
      throw new Failure('overloaded', { provider, retryAfterMs: waitMs - timeoutMs });
    },
  };
}

/** The release before does not tell the name of its default model: then the worker decides. */
function serves(heartbeat: PoolHeartbeat, model: string | undefined): boolean {
  if (model === undefined) return heartbeat.hasDefaultModel;
  return (
    (heartbeat.hasDefaultModel && heartbeat.defaultModel === undefined) || isModelAllowed(model, heartbeat)
  );
}

function toLivePool(
  heartbeat: PoolHeartbeat,
  { model, ageMs }: { model: string | undefined; ageMs: number },
): LivePool {
  const asked = model ?? heartbeat.defaultModel;
  const circuit = heartbeat.breakers?.find((breaker) => breaker.model !== null && breaker.model === asked);
  const leftMs = (ms = 0) => Math.max(0, ms - ageMs);
  return {
    ...heartbeat,
    heldMs: Math.max(
      leftMs(heartbeat.heldForMs),
      circuit?.state === 'limited' ? leftMs(circuit.nextProbeMs) : 0,
    ),
    openForMs: circuit?.state === 'open' ? leftMs(circuit.nextProbeMs) : 0,
  };
}

const unavailable = (provider: ProviderId, pools: LivePool[]): Failure =>
  new Failure('provider_unavailable', {
    provider,
    retryAfterMs: Math.min(...pools.map(({ openForMs }) => openForMs)),
  });

/** For a request that names a model which callers may not, or none to a provider without a default one. */
export const modelNotAllowed = (provider: ProviderId): Failure =>
  new Failure('invalid_request', {
    provider,
    detail:
      'X-LLM-Model must name a model that may be used here; only a provider with a default model can do without.',
    errors: [{ pointer: 'X-LLM-Model', detail: 'must name a model that may be used here' }],
  });
