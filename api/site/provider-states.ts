import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { Heartbeats } from '../../shared/fleet/heartbeats.js';
import { withTimeout } from '../../shared/runtime/retry.js';

/** Who answers for a provider; `unknown` while the workers cannot be seen. */
export type ProviderState = 'real' | 'simulated' | 'no_worker' | 'unknown';

export type ProviderStates = Readonly<Record<ProviderId, ProviderState>>;

interface ProviderStatesDeps {
  heartbeats: Pick<Heartbeats, 'of'>;
  /** Rejects when the queue's store is down. Simultaneous calls share one check, because strangers may ask. */
  checkStore: () => Promise<unknown>;
  /** How long a page waits for that, in milliseconds. */
  storeTimeoutMs?: number;
}

/** By the workers' last heartbeats. Where a provider has none, the store is asked, because it may be down instead. */
export function createProviderStates({
  heartbeats,
  checkStore,
  storeTimeoutMs = 1000,
}: ProviderStatesDeps): () => Promise<ProviderStates> {
  const seesWorkers = () =>
    withTimeout(storeTimeoutMs, checkStore()).then(
      () => true,
      () => false,
    );
  const stateOf = (id: ProviderId): ProviderState => {
    const heard = heartbeats.of(id);
    if (heard === undefined) return 'unknown';
    if (heard.length === 0) return 'no_worker';
    return heard.every(({ simulated }) => simulated) ? 'simulated' : 'real';
  };
  return async () => {
    const states = providerIds.map((id) => [id, stateOf(id)] as const);
    const isInDoubt = states.some(([, state]) => state === 'no_worker') && !(await seesWorkers());
    return Object.fromEntries(
      states.map(([id, state]) => [id, isInDoubt && state === 'no_worker' ? 'unknown' : state]),
    ) as unknown as ProviderStates;
  };
}
