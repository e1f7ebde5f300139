import { type ProviderId, providerIds } from '../contracts/contract.js';
import type { Fleet, FleetProvider, FleetQueue } from '../contracts/fleet-contract.js';
import type { Sample } from '../contracts/history.js';
import { type QueueDepth, type QueueStore, reasonOf } from '../queue/queue-store.js';
import { release } from '../runtime/program.js';
import { singleFlight, withTimeout } from '../runtime/retry.js';
import { describeProviders } from './fleet.js';
import type { Heartbeats } from './heartbeats.js';

/** Knows the workers and counts jobs: an API process's link to the fleet. */
export interface FleetSource {
  readonly heartbeats: Heartbeats;
  /** Whether the queue has been reached. */
  readonly isConnected: boolean;
  /** Rejects while the store is down, and until the queue has been reached. */
  measure(provider: ProviderId): Promise<QueueDepth>;
}

interface FleetStateDeps {
  store: Pick<QueueStore, 'kind' | 'check'>;
  source: FleetSource;
  /** The longest wait for the store, in milliseconds. */
  timeoutMs?: number;
}

/** The fields of a sample that say how busy a provider is. */
type Load = Pick<Sample, 'waiting' | 'active' | 'inFlight' | 'concurrency'>;

/** Operators must see the store's silence within three seconds. */
const defaultTimeoutMs = 1000;
/** On PostgreSQL a count reads all that waits, so the board, its samples and the metrics share one. */
const countsApartMs = 1000;

type Depths = ReadonlyMap<ProviderId, QueueDepth>;

/** The state of the whole fleet: workers, providers and queue, as this process knows them. */
export class FleetState {
  readonly #deps: Required<FleetStateDeps>;
  readonly #count = singleFlight(() => this.#countAll(), { apartMs: 0 });
  #counted: { at: number; depths: Depths } | undefined;

  constructor(deps: FleetStateDeps) {
    this.#deps = { timeoutMs: defaultTimeoutMs, ...deps };
  }

  /** Never rejects: what cannot be reached is part of the state. */
  async read(): Promise<Fleet> {
    const { heartbeats } = this.#deps.source;
    const [queue, depths] = await Promise.all([this.#readQueue(), this.readDepths()]);
    if (queue.status === 'failing') heartbeats.recordOutage();
    return {
      at: new Date().toISOString(),
      release,
      queue,
      providers: describeProviders(heartbeats).map(({ workers, ...provider }) => ({
        ...provider,
        ...describeDepth(depths?.get(provider.provider)),
        workers,
      })),
    };
  }

  /** How busy each provider is; what is not known is null. Never rejects, and takes a second at most. */
  async readLoads(): Promise<(Load & { provider: ProviderId })[]> {
    const depths = await this.readDepths();
    const { heartbeats } = this.#deps.source;
    return describeProviders(heartbeats).map(({ provider, workers, inFlight, concurrency }) => {
      const depth = depths?.get(provider);
      const isHeard = workers.some(({ state }) => state !== 'silent');
      return {
        provider,
        waiting: depth?.waiting ?? null,
        active: depth?.active ?? null,
        ...(isHeard ? { inFlight, concurrency } : { inFlight: null, concurrency: null }),
      };
    });
  }

  async #readQueue(): Promise<FleetQueue> {
    const { source, timeoutMs } = this.#deps;
    const { kind: store, check } = this.#deps.store;
    try {
      await withTimeout(timeoutMs, check());
    } catch (error) {
      return { store, status: 'failing', detail: reasonOf(error) };
    }
    if (!source.isConnected) return { store, status: 'failing', detail: 'not connected yet' };
    return { store, status: 'ok' };
  }

  /** Waiting and active jobs, at most a second old; undefined while the store is silent. Takes a second at most. */
  async readDepths(): Promise<Depths | undefined> {
    const counted = this.#counted;
    if (counted && performance.now() - counted.at < countsApartMs) return counted.depths;
    return withTimeout(this.#deps.timeoutMs, this.#count()).catch(() => {
      this.#counted = undefined;
      return undefined;
    });
  }

  async #countAll(): Promise<Depths> {
    const { source } = this.#deps;
    const at = performance.now();
    const counts = providerIds.map(async (id) => [id, await source.measure(id)] as const);
    // The next count must not begin while a part of this one hangs.
    await Promise.allSettled(counts);
    const depths = new Map(await Promise.all(counts));
    this.#counted = { at, depths };
    return depths;
  }
}

function describeDepth(depth: QueueDepth | undefined): Pick<FleetProvider, 'queue'> {
  if (depth === undefined) return {};
  const { waiting, active, oldestAddedAt } = depth;
  const oldest = oldestAddedAt !== undefined && { oldestSince: new Date(oldestAddedAt).toISOString() };
  return { queue: { waiting, active, ...oldest } };
}
