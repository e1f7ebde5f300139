import type { ProviderId } from '../shared/contract.js';
import { Failure } from '../shared/failures.js';
import type { PoolBeat } from '../shared/messages.js';

/** What this API process knows of the pools, from their beats. */
export interface PoolView {
  noteBeat(beat: PoolBeat): void;
  /** Counts a job of our own as outstanding until the function it gives is called. */
  noteAdded(provider: ProviderId): () => void;
  /**
   * Throws `provider_unavailable` when no live worker would take the job, `overloaded` when the wait predicted from
   * the backlog is longer than `patienceMs`, `invalid_request` when the pool has no model for it.
   */
  admit(provider: ProviderId, request: { patienceMs: number; namesModel: boolean }): void;
}

interface Sighting {
  readonly beat: PoolBeat;
  readonly at: number;
}

/** Three missed beats and a little: a worker that is silent this long does not count. */
const beatValidMs = 3500;

/**
 * `since` is when beats began to arrive, in milliseconds since the epoch. Until every live worker must have been
 * heard of once, an unknown pool gets the benefit of the doubt.
 */
export function createPoolView({ since, now = Date.now }: { since: number; now?: () => number }): PoolView {
  const sightings = new Map<ProviderId, Map<string, Sighting>>();
  const outstanding = new Map<ProviderId, number>();
  const count = (provider: ProviderId, change: number) =>
    outstanding.set(provider, (outstanding.get(provider) ?? 0) + change);

  const live = (provider: ProviderId): PoolBeat[] => {
    const workers = sightings.get(provider) ?? new Map<string, Sighting>();
    for (const [name, { at }] of workers) if (now() - at > beatValidMs) workers.delete(name);
    return [...workers.values()].map(({ beat }) => beat);
  };

  return {
    noteBeat: (beat) => {
      const workers = sightings.get(beat.provider) ?? new Map<string, Sighting>();
      sightings.set(beat.provider, workers);
      if (beat.state === 'stopped') workers.delete(beat.worker);
      else workers.set(beat.worker, { beat, at: now() });
    },
    noteAdded: (provider) => {
      count(provider, 1);
      return () => void count(provider, -1);
    },
    admit: (provider, { patienceMs, namesModel }) => {
      const beats = live(provider);
      const taking = beats.filter(({ state }) => state !== 'paused');
      if (taking.length === 0) {
        if (!sightings.has(provider) && now() - since < beatValidMs) return;
        throw new Failure('provider_unavailable', { provider });
      }
      if (!namesModel && !taking.some(({ hasDefaultModel }) => hasDefaultModel)) throw noModel(provider);
      const waitMs = predictWaitMs(taking, outstanding.get(provider) ?? 0);
      if (waitMs > patienceMs)
        throw new Failure('overloaded', { provider, retryAfterMs: waitMs - patienceMs });
    },
  };
}

/**
 * Time until a job added now is taken: until enough of the jobs before it have left, at the pools' mean pace. The beats
 * tell of everybody's jobs, up to a second late; our own are known exactly.
 */
function predictWaitMs(beats: PoolBeat[], ownJobs: number): number {
  const sum = (pick: (beat: PoolBeat) => number) => beats.reduce((total, beat) => total + pick(beat), 0);
  const concurrency = sum(({ concurrency }) => concurrency);
  // A worker that has called nobody yet does not know how long a call takes.
  const paces = beats.map((beat) => beat.meanJobMs).filter((meanMs) => meanMs > 0);
  const meanJobMs = paces.reduce((total, meanMs) => total + meanMs, 0) / Math.max(1, paces.length);
  const toldOf = Math.max(...beats.map(({ waiting }) => waiting)) + sum(({ inFlight }) => inFlight);
  const ahead = Math.max(toldOf, ownJobs);
  return (Math.max(0, ahead - concurrency + 1) / concurrency) * meanJobMs;
}

/** For a request that names no model to a provider that has no default one. */
export const noModel = (provider: ProviderId): Failure =>
  new Failure('invalid_request', {
    provider,
    detail: 'This provider has no default model here: name one in X-LLM-Model.',
    errors: [{ pointer: 'X-LLM-Model', detail: 'is required for this provider' }],
  });
