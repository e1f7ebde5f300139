/** One job's part in the slots of a pool; every step can be taken again without harm. */
export interface Slot {
  /** Resolves when the job has a slot, the most urgent first, then the oldest. */
  take(): Promise<void>;
  /** Gives the slot to another job, for as long as this one waits for something. */
  leave(): void;
  /** The job has ended. */
  close(): void;
}

/** How urgent a job is: BullMQ's priority (0 is the most urgent), and when it was added, in milliseconds since the epoch. */
export interface Urgency {
  readonly priority: number;
  readonly addedAt: number;
}

interface SlotsOptions {
  /** Jobs that may have a slot at once. */
  size: number;
  /** Called when `away` has changed. */
  onChange: () => void;
}

interface Waiting extends Urgency {
  grant(): void;
}

/**
 * The slots of a pool. BullMQ bounds how many jobs are here; a job that waits for a model that cools down, or hangs at
 * one that is given up, has no slot, and another is taken from the queue in its place. When it goes on it comes before whatever
 * is less urgent or newer, so that newer jobs do not starve it.
 */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #waiting: Waiting[] = [];
  #held = 0;
  #away = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** Jobs that are here without wanting a slot. */
  get away(): number {
    return this.#away;
  }

  open(urgency: Urgency): Slot {
    let state: 'new' | 'waiting' | 'held' | 'away' | 'closed' = 'new';
    return {
      take: async () => {
        if (state !== 'new' && state !== 'away') return;
        if (state === 'away') this.#setAway(-1);
        state = 'waiting';
        await this.#grant(urgency);
        // The job may have ended meanwhile.
        if (state === 'waiting') state = 'held';
        else this.#release();
      },
      leave: () => {
        if (state !== 'held') return;
        state = 'away';
        this.#release();
        this.#setAway(1);
      },
      close: () => {
        if (state === 'held') this.#release();
        if (state === 'away') this.#setAway(-1);
        state = 'closed';
      },
    };
  }

  #setAway(change: number): void {
    this.#away += change;
    this.#options.onChange();
  }

  #grant(urgency: Urgency): Promise<void> {
    if (this.#held < this.#options.size && this.#waiting.length === 0) {
      this.#held += 1;
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const later = this.#waiting.findIndex((other) => isMoreUrgent(urgency, other));
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, { ...urgency, grant: resolve });
    return promise;
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#held -= 1;
    else next.grant();
  }
}

const isMoreUrgent = (one: Urgency, other: Urgency): boolean =>
  one.priority === other.priority ? one.addedAt < other.addedAt : one.priority < other.priority;
