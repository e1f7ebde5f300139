import { type PoolHeartbeat, topics } from '../../shared/protocol/messages.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';

interface HeartbeatDeps {
  relay: Pick<Relay, 'publish'>;
  describe: () => Promise<PoolHeartbeat>;
  log: Log;
}

const intervalMs = 1000;
/** Longer than a timer that is on time and the answers of the store take: the same state is not sent twice a second. */
const lateAfterMs = 1500;
/** How long `stopped` waits for a heartbeat that is being published, so that it is not overtaken. */
const stopTimeoutMs = 200;
/** A turn that lasts for longer is not worth more messages. */
const maxUnanswered = 30;

/**
 * Publishes the state of the pool to every API process, once a second and after changes, so that each knows at once where a
 * request has no chance. One heartbeat is published at a time: none wait behind one that hangs, but a change in the meantime
 * is published after it.
 */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #hasChanged = false;
  #sentAt = performance.now();
  /** Late ones that the store has not answered. */
  #unanswered = 0;
  #last: PoolHeartbeat | undefined;
  #publishing: Promise<void> | undefined;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** Resolves once the first heartbeat has been published, or could not be. */
  start(): Promise<void> {
    this.#timer = setInterval(() => void this.#beat(), intervalMs);
    return this.#beat();
  }

  /** Publishes a change now instead of at the next second. */
  publish(): void {
    this.#hasChanged = true;
    void this.#beat();
  }

  /**
   * Publishes the last state again if the timer is late; for turns of the event loop that may take long. A new state, and
   * the answer to the message before, need answers of the store, which are read in the next turn.
   */
  publishIfLate(): void {
    const isLate = performance.now() - this.#sentAt > lateAfterMs;
    if (!isLate || this.#isStopped || this.#last === undefined || this.#unanswered >= maxUnanswered) return;
    this.#unanswered += 1;
    void this.#send(this.#last)
      .catch((error) => this.#logFailure(error))
      .finally(() => {
        this.#unanswered -= 1;
      });
  }

  /** Publishes that the pool is `stopped`, and nothing after that. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isStopped = true;
    try {
      if (this.#publishing) await withTimeout(stopTimeoutMs, this.#publishing).catch(() => undefined);
      await this.#send({ ...(this.#last ?? (await this.#deps.describe())), state: 'stopped' });
    } catch (error) {
      this.#logFailure(error);
    }
  }

  #beat(): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    this.#publishing ??= this.#publishChanges()
      .catch((error) => this.#logFailure(error))
      .finally(() => {
        this.#publishing = undefined;
      });
    return this.#publishing;
  }

  async #publishChanges(): Promise<void> {
    do {
      this.#hasChanged = false;
      this.#last = await this.#deps.describe();
      if (!this.#isStopped) await this.#send(this.#last);
    } while (this.#hasChanged && !this.#isStopped);
  }

  #send(heartbeat: PoolHeartbeat): Promise<void> {
    this.#sentAt = performance.now();
    return this.#deps.relay.publish(topics.pool(heartbeat.provider, heartbeat.worker), heartbeat);
  }

  #logFailure(err: unknown): void {
    this.#deps.log.debug({ err }, 'heartbeat not published');
  }
}
