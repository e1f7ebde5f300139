import type { ProviderId } from '../../shared/contract.js';
import type { CallFacts } from './call.js';

interface Counts {
  total: number;
  inFlight: number;
  peakInFlight: number;
  readonly byModel: Map<string, number>;
}

// Bounded, because clients choose the names.
const countedModels = 1000;

/** Counts calls per provider and model, and how many were in flight at once. */
export class CallCounts {
  readonly #providers = new Map<ProviderId, Counts>();

  /** Calls that have begun and not ended, over all providers. */
  get inFlight(): number {
    return [...this.#providers.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  begin({ provider, model = '(none)' }: CallFacts): void {
    const counts = this.#of(provider);
    counts.total += 1;
    counts.inFlight += 1;
    counts.peakInFlight = Math.max(counts.peakInFlight, counts.inFlight);
    const { byModel } = counts;
    const name = byModel.size < countedModels || byModel.has(model) ? model : '(others)';
    byModel.set(name, (byModel.get(name) ?? 0) + 1);
  }

  end(provider: ProviderId): void {
    this.#of(provider).inFlight -= 1;
  }

  /** Resets the counts to zero; calls in flight remain counted as such. */
  clear(): void {
    for (const [provider, { inFlight }] of this.#providers) {
      this.#providers.set(provider, { total: 0, inFlight, peakInFlight: inFlight, byModel: new Map() });
    }
  }

  toJSON(): object {
    const entries = [...this.#providers].map(([provider, counts]) => [
      provider,
      { ...counts, byModel: Object.fromEntries(counts.byModel) },
    ]);
    return Object.fromEntries(entries);
  }

  #of(provider: ProviderId): Counts {
    const counts = this.#providers.get(provider);
    if (counts !== undefined) return counts;
    const fresh = { total: 0, inFlight: 0, peakInFlight: 0, byModel: new Map<string, number>() };
    this.#providers.set(provider, fresh);
    return fresh;
  }
}
