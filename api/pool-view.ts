import { isModelAllowed } from '../shared/allowed-models.js';
import type { ProviderId } from '../shared/contract.js';
import { Failure } from '../shared/failures.js';
import type { PoolBeat } from '../shared/messages.js';
import { type LivePool, type Outstanding, predictWaitMs } from './predicted-wait.js';

/** What this API process knows of the pools, from their beats. */
export interface PoolView {
  noteBeat(beat: PoolBeat): void;
  /** To be called when the store was found away: what was not heard meanwhile tells nothing. */
  noteOutage(): void;
  /** Counts a job of our own as outstanding until the function it gives is called; `isAsync` as in `admit`. */
  noteAdded(provider: ProviderId, options?: { isAsync: boolean }): () => void;
  /**
   * Throws `provider_unavailable` when no live worker would take the job or call its model, `overloaded` when the wait
   * predicted from the backlog is longer than `patienceMs`, `provider_rate_limited` when it is only because the provider
   * makes every pool wait with this model, `invalid_request` when no pool has a model for it, or may be asked for the one
   * it names. An asynchronous request comes after all others.
   */
  admit(provider: ProviderId, request: Admission): void;
}

interface Admission {
  patienceMs: number;
  /** The model that the request names, if it does. */
  model: string | undefined;
  isAsync?: boolean;
}

interface Sighting {
  readonly beat: PoolBeat;
  readonly at: number;
}

/** Three missed beats and a little: a worker that is silent this long does not count. */
const beatValidMs = 3500;

/**
 * `now` is a clock that never jumps, in milliseconds, and `since` when beats began to arrive. Until every live worker must have been
 * heard of once, and again after an outage of the store, a pool of which nobody is known who goes on gets the benefit of
 * the doubt.
 */
export function createPoolView(options: { since: number; now?: () => number }): PoolView {
  const { now = () => performance.now() } = options;
  let { since } = options;
  const sightings = new Map<ProviderId, Map<string, Sighting>>();
  const outstanding = new Map<ProviderId, Outstanding>();
  const outstandingOf = (provider: ProviderId) => outstanding.get(provider) ?? { waitedFor: 0, async: 0 };
  const count = (provider: ProviderId, kind: keyof Outstanding, change: number) => {
    const own = outstandingOf(provider);
    outstanding.set(provider, { ...own, [kind]: own[kind] + change });
  };

  const heardOf = (provider: ProviderId): Map<string, Sighting> => {
    const workers = sightings.get(provider) ?? new Map<string, Sighting>();
    for (const [name, { at }] of workers) if (now() - at > beatValidMs) workers.delete(name);
    return workers;
  };
  const live = (provider: ProviderId, model: string | undefined): LivePool[] =>
    [...heardOf(provider).values()].map(({ beat, at }) => toLivePool(beat, { model, ageMs: now() - at }));

  return {
    noteBeat: (beat) => {
      // Here as well: workers come and go under new names although nobody asks for anything.
      const workers = heardOf(beat.provider);
      sightings.set(beat.provider, workers);
      if (beat.state === 'stopped') workers.delete(beat.worker);
      else workers.set(beat.worker, { beat, at: now() });
    },
    noteOutage: () => {
      since = now();
    },
    noteAdded: (provider, { isAsync } = { isAsync: false }) => {
      const kind = isAsync ? 'async' : 'waitedFor';
      count(provider, kind, 1);
      return () => count(provider, kind, -1);
    },
    admit: (provider, { patienceMs, model, isAsync = false }) => {
      const beats = live(provider, model);
      const taking = beats.filter(({ state }) => state !== 'paused');
      if (taking.length === 0) {
        if (beats.length === 0 && now() - since < beatValidMs) return;
        throw new Failure('provider_unavailable', { provider });
      }
      if (!taking.some((pool) => serves(pool, model))) throw noModel(provider);
      const calling = taking.filter(({ openForMs }) => openForMs === 0);
      if (calling.length === 0) throw unavailable(provider, taking);
      const waitMs = predictWaitMs(calling, { own: outstandingOf(provider), isAsync });
      if (waitMs <= patienceMs) return;
      const heldMs = Math.min(...calling.map((pool) => pool.heldMs));
      if (heldMs > 0 && waitMs - heldMs <= patienceMs)
        throw new Failure('provider_rate_limited', { provider, retryAfterMs: heldMs });
      throw new Failure('overloaded', { provider, retryAfterMs: waitMs - patienceMs });
    },
  };
}

/** The release before does not tell the name of its default model: then the worker decides. */
function serves(beat: PoolBeat, model: string | undefined): boolean {
  if (model === undefined) return beat.hasDefaultModel;
  return (beat.hasDefaultModel && beat.defaultModel === undefined) || isModelAllowed(model, beat);
}

function toLivePool(
  beat: PoolBeat,
  { model, ageMs }: { model: string | undefined; ageMs: number },
): LivePool {
  const asked = model ?? beat.defaultModel;
  const circuit = beat.breakers?.find((breaker) => breaker.model !== null && breaker.model === asked);
  const leftMs = (ms = 0) => Math.max(0, ms - ageMs);
  return {
    ...beat,
    heldMs: Math.max(leftMs(beat.heldForMs), circuit?.state === 'limited' ? leftMs(circuit.nextProbeMs) : 0),
    openForMs: circuit?.state === 'open' ? leftMs(circuit.nextProbeMs) : 0,
  };
}

const unavailable = (provider: ProviderId, pools: LivePool[]): Failure =>
  new Failure('provider_unavailable', {
    provider,
    retryAfterMs: Math.min(...pools.map(({ openForMs }) => openForMs)),
  });

/** For a request that names a model which callers may not, or none to a provider without a default one. */
export const noModel = (provider: ProviderId): Failure =>
  new Failure('invalid_request', {
    provider,
    detail:
      'X-LLM-Model must name a model that may be used here; only a provider with a default model can do without.',
    errors: [{ pointer: 'X-LLM-Model', detail: 'must name a model that may be used here' }],
  });
