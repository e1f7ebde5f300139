import type { Config } from '../shared/config/config.js';
import { type ProviderId, providerIds } from '../shared/contract.js';
import type { ConcurrencySuggestion } from '../shared/fleet.js';
import { openFleet } from './fleet.js';

/** What the heartbeats of `listenMs` suggest for each provider; nothing while no worker can be heard. */
export async function hearSuggestions(
  config: Config,
  listenMs: number,
): Promise<ReadonlyMap<ProviderId, ConcurrencySuggestion>> {
  const open = openFleet(config);
  try {
    await open.listen(listenMs);
    return new Map(
      providerIds.flatMap((id) => {
        const suggestion = open.suggestionOf(id);
        return suggestion ? [[id, suggestion] as const] : [];
      }),
    );
  } finally {
    await open.close();
  }
}

/** One line for people. */
export const describeSuggestion = (
  provider: ProviderId,
  { concurrency, perWorker, arrivalsPerSecond, meanMs, p50Ms, p99Ms, jobs, overMs }: ConcurrencySuggestion,
): string =>
  `${provider}: ${concurrency} at once suggested, ${perWorker} for each worker: ${arrivalsPerSecond} jobs a second, of ${meanMs} ms ` +
  `(p50 ${p50Ms}, p99 ${p99Ms}), by the ${jobs} jobs of ${Math.round(overMs / 1000)} s`;
