import { LRUCache } from 'lru-cache';
import type { Relay, RelayNode } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import type { RunningJobs } from './running-jobs.js';

interface LostCallersDeps {
  jobs: Pick<RunningJobs, 'apis' | 'cancelApis'>;
  relay: Pick<Relay, 'nodeId' | 'nodes'>;
  /** The clock of jobs, in milliseconds since the epoch. */
  now: () => number;
  log: Log;
  /** A clock that never jumps, in milliseconds. */
  clock?: () => number;
}

/** How often the relay's nodes are listed, also while no job runs: a job may come whose process is dead. */
const askEveryMs = 5000;
/** The same while one of those processes is unknown or late. A node reports every two seconds. */
const askLateEveryMs = 1000;
const lateAfterMs = 8000;
const goneAfterMs = 15_000;
/** A slower answer, or a longer gap between answers, ends an interruption: other processes may be coming back, too. */
const slowAnswerMs = 2000;
const interruptedAfterMs = askEveryMs + 2 * slowAnswerMs;
/** For this long after an interruption no process counts as gone. */
const comebackMs = 10_000;
/** Processes that are remembered: each start of one is another. */
const maxRemembered = 1000;

/**
 * Ends calls whose API process has died: one that was seen before and that the relay has not heard of for
 * `goneAfterMs`. None counts as gone while, or soon after, the store cannot be asked.
 */
export class LostCallers {
  readonly #deps: Required<LostCallersDeps>;
  /** When each process was last known to live, by `clock`. */
  readonly #aliveAt = new LRUCache<string, number>({ max: maxRemembered });
  /** When each was found to be gone, by the clock of jobs. */
  readonly #goneAt = new LRUCache<string, number>({ max: maxRemembered });
  #answeredAt = Number.NEGATIVE_INFINITY;
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ clock = () => performance.now(), ...deps }: LostCallersDeps) {
    this.#deps = { ...deps, clock };
  }

  start(): void {
    this.#timer = setInterval(() => void this.check(), askLateEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Asks which processes there are, if it is time to, and cancels the jobs of those that are gone. Never throws. */
  async check(): Promise<void> {
    const { jobs, relay, log } = this.#deps;
    const askedAt = this.#deps.clock();
    const isLate = (aliveAt = Number.NEGATIVE_INFINITY) => askedAt - aliveAt > lateAfterMs;
    const isAnyLate = [...jobs.apis].some((api) => isLate(this.#aliveAt.get(api)));
    const isDue = isAnyLate || askedAt - this.#answeredAt >= askEveryMs;
    if (this.#isAsking || !isDue) return;
    this.#isAsking = true;
    try {
      this.#onAnswer(await relay.nodes(), askedAt);
    } catch (err) {
      this.#interruptedAt = this.#deps.clock();
      log.debug({ err }, 'API processes not listed');
    } finally {
      this.#isAsking = false;
    }
  }

  #onAnswer(nodes: readonly RelayNode[], askedAt: number): void {
    const { jobs, relay, now, log } = this.#deps;
    const answeredAt = this.#deps.clock();
    const gapMs = answeredAt - this.#answeredAt;
    this.#answeredAt = answeredAt;
    const own = nodes.find(({ id }) => id === relay.nodeId)?.lastHeartbeat;
    // A store that has lost this process has lost the others as well.
    if (own === undefined || answeredAt - askedAt > slowAnswerMs || gapMs > interruptedAfterMs)
      this.#interruptedAt = answeredAt;
    for (const { id, lastHeartbeat } of nodes) {
      if (own === undefined || lastHeartbeat === undefined) continue;
      const aliveAt = answeredAt - Math.max(0, own - lastHeartbeat);
      this.#aliveAt.set(id, aliveAt);
      if (answeredAt - aliveAt < goneAfterMs) this.#goneAt.delete(id);
    }
    if (answeredAt - this.#interruptedAt < comebackMs) return;
    for (const api of jobs.apis) {
      const aliveAt = this.#aliveAt.get(api);
      if (aliveAt === undefined || answeredAt - aliveAt < goneAfterMs) continue;
      if (!this.#goneAt.has(api))
        log.warn({ api }, 'API process gone: the calls that only it waits for are cancelled');
      // The next attempt, which another worker has added since, is unwanted too.
      this.#goneAt.set(api, now());
    }
    jobs.cancelApis(new Map(this.#goneAt.entries()));
  }
}
