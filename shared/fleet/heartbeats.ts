import type { ProviderId } from '../contracts/contract.js';
import type { FleetWorker } from '../contracts/fleet-contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';
import type { EndedChats } from '../protocol/stored-chat.js';
import { ChatTotals } from './chat-totals.js';
import { describeWorker } from './fleet-worker.js';

/** A worker's last heartbeat. */
export interface HeardPool {
  readonly heartbeat: PoolHeartbeat;
  /** When it arrived, by a clock that never jumps, in milliseconds. */
  readonly at: number;
  /** Whether the worker has said that it stops. */
  readonly isStopped: boolean;
  /** The worker as operators see it. */
  readonly worker: FleetWorker;
  /** When it arrived, in milliseconds since the epoch. */
  readonly heardTime: number;
}

interface HeartbeatsOptions {
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
  /** The time, in milliseconds since the epoch. */
  time?: () => number;
  /** When heartbeats began to arrive, by `now`; absent means now, and infinity that `begin` will be called. */
  since?: number;
}

/**
 * How long a worker may be silent, which sends a heartbeat a second, in milliseconds. Operators see after two that it
 * is `silent`; it counts for admission until three and a little are missing, because a busy one is late.
 */
export const silence = {
  shown: 2200,
  counts: 3500,
  /** After this silence of all its workers a queue counts as abandoned. */
  abandoned: 7000,
  /** Operators no longer see the worker. */
  hidden: 60_000,
  /** Nothing is known of it. A list of models must not be empty for as long as a deployment restarts its workers. */
  forgotten: 600_000,
} as const;

/** Heartbeats of ever new workers must not fill the memory. */
const maxWorkers = 1000;

/** The last heartbeats of all pools. What they mean is read by functions and classes beside this one. */
export class Heartbeats {
  readonly #now: () => number;
  readonly #time: () => number;
  /** When heartbeats began to arrive, or an outage of the store ended. */
  #since: number;
  /** By worker, the longest silent one first. */
  readonly #pools = new Map<ProviderId, Map<string, HeardPool>>();
  /** When each model was named first, in milliseconds since the epoch; by `provider/model`. */
  readonly #firstNamed = new Map<string, number>();
  /** How chats ended, by the heartbeats of the API processes. */
  readonly chats: ChatTotals;

  constructor({ now = () => performance.now(), time = Date.now, since = now() }: HeartbeatsOptions = {}) {
    this.#now = now;
    this.#time = time;
    this.#since = since;
    this.chats = new ChatTotals({ now, time });
  }

  add(heartbeat: PoolHeartbeat): void {
    const { provider, worker, state } = heartbeat;
    const pools = this.#pools.get(provider) ?? new Map<string, HeardPool>();
    const [at, heardTime] = [this.#now(), this.#time()];
    for (const [name, pool] of pools) {
      if (at - pool.at <= silence.forgotten && pools.size < maxWorkers) break;
      pools.delete(name);
    }
    const known = pools.get(worker);
    pools.delete(worker);
    this.#pools.set(provider, pools);
    if (state === 'stopped') {
      if (known) pools.set(worker, { ...known, at, isStopped: true });
      return;
    }
    const before = known?.isStopped ? undefined : known?.worker;
    const described = describeWorker(heartbeat, state, { heardTime, before });
    pools.set(worker, { heartbeat, at, isStopped: false, worker: described, heardTime });
    for (const model of modelsNamedIn(heartbeat)) {
      const id = `${provider}/${model}`;
      if (!this.#firstNamed.has(id)) this.#firstNamed.set(id, heardTime);
    }
  }

  addChats(process: string, chats: readonly EndedChats[]): void {
    this.chats.add(process, chats);
  }

  /** Heartbeats can arrive from now on. */
  begin(): void {
    this.#since = this.#now();
  }

  /** To be called while the store is down: until heartbeats must have come again, silence means nothing. */
  recordOutage(): void {
    this.#since = Math.max(this.#since, this.#now());
  }

  /** Whether every live worker must have been heard of, for so long that operators see it. */
  get isFirstDue(): boolean {
    return this.#now() - this.#since > silence.shown;
  }

  /** Whether a provider whose workers are all silent may still have one, as far as admission goes. */
  get mayHaveMissed(): boolean {
    return this.#now() - this.#since < silence.counts;
  }

  /** The pools that were heard of within this time and have not stopped. */
  within(ms: number, provider: ProviderId): HeardPool[] {
    const pools = [...(this.#pools.get(provider)?.values() ?? [])];
    return pools.filter(({ at, isStopped }) => !isStopped && this.#now() - at <= ms);
  }

  /** The last heartbeats of a provider's live workers; undefined as long as nothing is known of them. */
  of(provider: ProviderId): PoolHeartbeat[] | undefined {
    const live = this.within(silence.counts, provider).map(({ heartbeat }) => heartbeat);
    return live.length === 0 && this.mayHaveMissed ? undefined : live;
  }

  shownOf(provider: ProviderId): FleetWorker[] {
    return this.within(silence.hidden, provider).map(({ worker, at, heardTime }) =>
      this.#now() - at <= silence.shown
        ? worker
        : { ...worker, state: 'silent', silentSince: new Date(heardTime).toISOString() },
    );
  }

  /** Time since a heartbeat, by the clock of this map. */
  ageMs({ at }: HeardPool): number {
    return this.#now() - at;
  }

  /** How long all workers of the provider have been silent, in milliseconds, outages of the store not counted. */
  silentMs(provider: ProviderId): number {
    const [last] = [...(this.#pools.get(provider)?.values() ?? [])].slice(-1);
    return this.#now() - Math.max(last?.at ?? this.#since, this.#since);
  }

  /** The models that the provider's workers named when they were heard last, with those that had stopped by then. */
  modelsOf(provider: ProviderId): { model: string; since: number }[] {
    const pools = [...(this.#pools.get(provider)?.values() ?? [])];
    const lastAt = pools.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
    if (this.#now() - lastAt > silence.forgotten) return [];
    const together = pools.filter(({ at }) => lastAt - at <= silence.counts);
    const models = new Set(together.flatMap(({ heartbeat }) => modelsNamedIn(heartbeat)));
    return [...models].map((model) => ({
      model,
      since: this.#firstNamed.get(`${provider}/${model}`) ?? this.#time(),
    }));
  }
}

/** A pattern names none. */
function modelsNamedIn({ defaultModel, models = [] }: PoolHeartbeat): string[] {
  const named = models.filter((model) => !model.includes('*'));
  return defaultModel === undefined ? named : [defaultModel, ...named];
}
