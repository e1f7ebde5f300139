import type { ProviderId } from '../../shared/contract.js';

const none = { total: 0, inFlight: 0, peakInFlight: 0 };

/** Counts calls per provider, and how many were in flight at once. */
export class CallCounts {
  readonly #providers = new Map<ProviderId, typeof none>();

  get inFlight(): number {
    return [...this.#providers.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  begin(provider: ProviderId): void {
    const { total, inFlight, peakInFlight } = this.#of(provider);
    const peak = Math.max(peakInFlight, inFlight + 1);
    this.#providers.set(provider, { total: total + 1, inFlight: inFlight + 1, peakInFlight: peak });
  }

  end(provider: ProviderId): void {
    const counts = this.#of(provider);
    this.#providers.set(provider, { ...counts, inFlight: counts.inFlight - 1 });
  }

  /** Resets the counts to zero; calls in flight remain counted as such. */
  clear(): void {
    for (const [provider, { inFlight }] of this.#providers)
      this.#providers.set(provider, { total: 0, inFlight, peakInFlight: inFlight });
  }

  toJSON(): object {
    return Object.fromEntries(this.#providers);
  }

  #of(provider: ProviderId): typeof none {
    return this.#providers.get(provider) ?? none;
  }
}
