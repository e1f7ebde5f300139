import { type ProviderId, providerIds } from '../contract.js';
import { isFailing } from '../failing.js';
import type { FleetFailing, FleetProvider, FleetWorker } from '../fleet-contract.js';
import type { Heartbeats } from './heartbeats.js';

/** A provider's workers. Only the store knows how many jobs wait. */
export type ServedProvider = Omit<FleetProvider, 'queue'>;

/** Best first. */
const states = ['serving', 'probing', 'paused'] as const;

/** The workers as operators see them, by provider in their usual order. Silent ones are shown for a minute. */
export const describeProviders = (heartbeats: Heartbeats): ServedProvider[] =>
  providerIds.map((provider) => describeProvider(provider, heartbeats));

function describeProvider(provider: ProviderId, heartbeats: Heartbeats): ServedProvider {
  const workers = heartbeats.shownOf(provider);
  const live = workers.filter(({ state }) => state !== 'silent');
  const state = stateOf(workers, heartbeats);
  const failing = state === 'serving' || state === 'probing' ? failingOf(live) : undefined;
  return {
    ...{ provider, state },
    ...(failing && { failing }),
    kind: kindOf(live.length > 0 ? live : workers),
    concurrency: sumOf(live, 'concurrency'),
    inFlight: sumOf(live, 'inFlight'),
    workers: workers.sort((a, b) => (a.worker < b.worker ? -1 : 1)),
  };
}

function stateOf(workers: readonly FleetWorker[], { isFirstDue }: Heartbeats): ServedProvider['state'] {
  const best = states.find((state) => workers.some((worker) => worker.state === state));
  if (best) return best;
  if (!isFirstDue) return 'unknown';
  return workers.length > 0 ? 'silent' : 'absent';
}

/** By the last failure of all. */
function failingOf(live: readonly FleetWorker[]): FleetFailing | undefined {
  if (!isFailing(live.flatMap(({ calls }) => calls ?? []))) return undefined;
  const [last] = live.flatMap(({ lastError }) => lastError ?? []).toSorted((a, b) => (a.at < b.at ? 1 : -1));
  return last && { code: last.code, since: last.since };
}

/** A number that JSON has, for every heartbeat. */
const sumOf = (workers: readonly FleetWorker[], field: 'concurrency' | 'inFlight'): number =>
  Math.min(
    workers.reduce((sum, worker) => sum + worker[field], 0),
    Number.MAX_SAFE_INTEGER,
  );

function kindOf(workers: readonly FleetWorker[]): ServedProvider['kind'] {
  const kinds = new Set(workers.map(({ simulated }) => simulated));
  if (kinds.size === 2) return 'mixed';
  const [simulated] = kinds;
  if (simulated === undefined) return 'unknown';
  return simulated ? 'simulated' : 'real';
}
