import { type PoolHeartbeat, topics } from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';

interface HeartbeatDeps {
  relay: Pick<Relay, 'broadcast'>;
  worker: string;
  log: Log;
  /** How often it is published, in milliseconds; by default once a second. */
  everyMs?: number;
}

/** Gives the state of a pool at this moment. Rejects when the store is unavailable. */
type DescribePool = () => Promise<PoolHeartbeat>;

const intervalMs = 1000;
/** How long a pool may take to describe itself. */
const describeTimeoutMs = 1000;
/** Longer than a timer that is on time and the answers of the store take: the same state is not sent twice a second. */
const lateAfterMs = 1500;
/** How long `stopped` waits for a heartbeat that is being published, so that it is not overtaken. */
const stopTimeoutMs = 200;
/** A turn that lasts for longer is not worth more messages. */
const maxUnanswered = 30;

/**
 * Publishes the states of this process's pools to every API process, once a second and after changes. One heartbeat is
 * published at a time: none wait behind one that hangs, but a change in the meantime is published after it.
 */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  /** The last heartbeat of each running pool; undefined before the first. */
  readonly #pools = new Map<DescribePool, PoolHeartbeat | undefined>();
  #timer: NodeJS.Timeout | undefined;
  #hasChanged = false;
  #sentAt = performance.now();
  /** Late ones that the store has not answered. */
  #unanswered = 0;
  #publishing: Promise<void> | undefined;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** Adds a pool. Resolves once a heartbeat with it has been published, or could not be. */
  start(describe: DescribePool): Promise<void> {
    this.#pools.set(describe, undefined);
    this.#timer ??= setInterval(() => void this.#beat(), this.#deps.everyMs ?? intervalMs);
    return this.publish();
  }

  /** Publishes a change now instead of at the next second. */
  publish(): Promise<void> {
    this.#hasChanged = true;
    return this.#beat();
  }

  /**
   * Publishes the last states again if the timer is late; for turns of the event loop that may take long. New states,
   * and the answer to the message before, need answers of the store, which are read in the next turn.
   */
  publishIfLate(): void {
    const isLate = performance.now() - this.#sentAt > lateAfterMs;
    if (!isLate || this.#unanswered >= maxUnanswered) return;
    this.#unanswered += 1;
    void this.#send([...this.#pools.values()]).finally(() => {
      this.#unanswered -= 1;
    });
  }

  /** Publishes that the pool is `stopped`, and nothing of it after that. */
  async stop(describe: DescribePool): Promise<void> {
    const last = this.#pools.get(describe);
    this.#pools.delete(describe);
    if (this.#pools.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (this.#publishing) await withTimeout(stopTimeoutMs, this.#publishing).catch(() => undefined);
    const state = last ?? (await describe().catch((error) => this.#logFailure(error)));
    await this.#send([state && { ...state, state: 'stopped' }]);
  }

  #beat(): Promise<void> {
    this.#publishing ??= this.#publishChanges().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  async #publishChanges(): Promise<void> {
    do {
      this.#hasChanged = false;
      await Promise.all([...this.#pools.keys()].map((describe) => this.#describe(describe)));
      await this.#send([...this.#pools.values()]);
    } while (this.#hasChanged && this.#pools.size > 0);
  }

  /** One pool that cannot be described in time does not keep back the others: its last state stands in. */
  async #describe(describe: DescribePool): Promise<void> {
    try {
      const state = await withTimeout(describeTimeoutMs, describe());
      if (this.#pools.has(describe)) this.#pools.set(describe, state);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  async #send(states: readonly (PoolHeartbeat | undefined)[]): Promise<void> {
    const { relay, worker } = this.#deps;
    const pools = states.filter((state) => state !== undefined);
    if (pools.length === 0) return;
    this.#sentAt = performance.now();
    await relay
      .broadcast(topics.processes, { v: writtenVersion, worker, pools })
      .catch((error) => this.#logFailure(error));
  }

  #logFailure(err: unknown): undefined {
    this.#deps.log.debug({ err }, 'heartbeat not published');
  }
}
