import type { Config } from '../shared/config/config.js';
import { type ProviderId, providerIds } from '../shared/contract.js';
import type { ConcurrencySuggestion } from '../shared/fleet-contract.js';
import { hearFleet } from './fleet.js';

/** What the heartbeats of `listenMs` suggest for each provider; nothing while no worker can be heard. */
export const hearSuggestions = (
  config: Config,
  listenMs: number,
): Promise<ReadonlyMap<ProviderId, ConcurrencySuggestion>> =>
  hearFleet(config, listenMs, ({ suggestionOf }) => {
    const all = providerIds.map((id) => [id, suggestionOf(id)] as const);
    return new Map(all.filter((one): one is [ProviderId, ConcurrencySuggestion] => one[1] !== undefined));
  });

/** One line for people. */
export const describeSuggestion = (
  provider: ProviderId,
  { concurrency, perWorker, arrivalsPerSecond, meanMs, p50Ms, p99Ms, jobs, overMs }: ConcurrencySuggestion,
): string =>
  `${provider}: ${concurrency} at once suggested, ${perWorker} for each worker: ${arrivalsPerSecond} jobs a second, of ${meanMs} ms ` +
  `(p50 ${p50Ms}, p99 ${p99Ms}), by the ${jobs} jobs of ${Math.round(overMs / 1000)} s`;
