import { type ProviderId, providerIds } from '../contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';

/** A model that callers may name. */
export interface ListedModel {
  readonly provider: ProviderId;
  /** The provider's own name. */
  readonly model: string;
  /** When this process first heard of it, in milliseconds since the epoch. */
  readonly since: number;
}

interface WorkersModels {
  readonly models: readonly string[];
  /** When the worker said so, by the list's clock. */
  readonly at: number;
}

/** Workers that were heard of within this time were there together. */
const togetherMs = 3500;
/** A list must not be empty for as long as a deployment restarts its workers. */
const keptMs = 600_000;

/** The models that pools name in their heartbeats; those of a provider without a worker stay for ten minutes. Patterns name none. */
export class ModelList {
  readonly #now: () => number;
  readonly #workers = new Map<ProviderId, Map<string, WorkersModels>>();
  /** By id. */
  readonly #since = new Map<string, number>();

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  record({ provider, worker, state, defaultModel, models = [] }: PoolHeartbeat): void {
    // Should it be the last one, it stays known.
    if (state === 'stopped') return;
    const at = this.#now();
    const workers = this.#workers.get(provider) ?? new Map<string, WorkersModels>();
    this.#workers.set(provider, workers);
    for (const [name, known] of workers) if (at - known.at > togetherMs) workers.delete(name);
    const named = models.filter((model) => !model.includes('*'));
    const all = defaultModel === undefined ? named : [defaultModel, ...named];
    workers.set(worker, { models: all, at });
    for (const model of all) this.#recordFirst(`${provider}/${model}`);
  }

  list(): ListedModel[] {
    return providerIds.flatMap((provider) =>
      [...this.#modelsOf(provider)].map((model) => ({
        provider,
        model,
        since: this.#since.get(`${provider}/${model}`) ?? Date.now(),
      })),
    );
  }

  #modelsOf(provider: ProviderId): Set<string> {
    const workers = [...(this.#workers.get(provider)?.values() ?? [])];
    const lastAt = Math.max(...workers.map(({ at }) => at));
    if (this.#now() - lastAt > keptMs) return new Set();
    return new Set(workers.filter(({ at }) => lastAt - at <= togetherMs).flatMap(({ models }) => models));
  }

  #recordFirst(id: string): void {
    if (!this.#since.has(id)) this.#since.set(id, Date.now());
  }
}
