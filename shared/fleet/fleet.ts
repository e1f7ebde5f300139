import { type ProviderId, providerIds } from '../contracts/contract.js';
import type { FleetProvider, FleetWorker } from '../contracts/fleet-contract.js';
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
  const takesJobs = state === 'serving' || state === 'probing';
  const failing = takesJobs ? heartbeats.chats.failingOf(provider) : undefined;
  const chats = heartbeats.chats.of(provider);
  return {
    provider,
    state,
    ...(failing && { failing }),
    ...(chats && { chats }),
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
