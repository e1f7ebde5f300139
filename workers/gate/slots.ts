/** One job's part in the slots of a pool; every operation may be repeated. */
export interface Slot {
  /** Resolves when the job has a slot: the most urgent job first, then the oldest. */
  take(): Promise<void>;
  /** Gives the slot to another job while this one waits for something. */
  park(): void;
  /** Gives the slot back: the job has ended. */
  close(): void;
  /** Whether the job is here without wanting a slot. */
  readonly isParked: boolean;
}

/** A job's urgency: BullMQ's priority (0 is the most urgent), and when it was added, in epoch milliseconds. */
export interface Urgency {
  readonly priority: number;
  readonly addedAt: number;
}

interface SlotsOptions {
  size: () => number;
  onChange: () => void;
}

interface Waiting extends Urgency {
  grant(): void;
}

/**
 * The slots of a pool. A job that waits for a model in its cooldown, or whose call hangs at an open breaker, is parked:
 * it has no slot, and another job is taken in its place. It goes on before less urgent and newer ones.
 */
export class Slots {
  readonly onChange: () => void;
  readonly #size: () => number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor({ size, onChange }: SlotsOptions) {
    this.#size = size;
    this.onChange = onChange;
  }

  open(urgency: Urgency): Slot {
    return new PoolSlot(urgency, this);
  }

  /** Resolves when one is free for a job that is as urgent. */
  take(urgency: Urgency): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const later = this.#waiting.findIndex((other) => isMoreUrgent(urgency, other));
    this.#waiting.splice(later < 0 ? this.#waiting.length : later, 0, { ...urgency, grant: resolve });
    this.grantFree();
    return promise;
  }

  release(): void {
    this.#taken -= 1;
    this.grantFree();
  }

  /** Gives free slots to the waiting jobs; to be called when the size has changed. */
  grantFree(): void {
    while (this.#taken < this.#size()) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#taken += 1;
      next.grant();
    }
  }
}

class PoolSlot implements Slot {
  readonly #urgency: Urgency;
  readonly #slots: Slots;
  #state: 'new' | 'waiting' | 'taken' | 'parked' | 'closed' = 'new';

  constructor(urgency: Urgency, slots: Slots) {
    this.#urgency = urgency;
    this.#slots = slots;
  }

  get isParked(): boolean {
    return this.#state === 'parked';
  }

  async take(): Promise<void> {
    if (this.#state !== 'new' && this.#state !== 'parked') return;
    const wasParked = this.isParked;
    this.#state = 'waiting';
    if (wasParked) this.#slots.onChange();
    await this.#slots.take(this.#urgency);
    // The job may have ended meanwhile.
    if (this.#state === 'waiting') this.#state = 'taken';
    else this.#slots.release();
  }

  park(): void {
    if (this.#state !== 'taken') return;
    this.#state = 'parked';
    this.#slots.release();
    this.#slots.onChange();
  }

  close(): void {
    const before = this.#state;
    this.#state = 'closed';
    if (before === 'taken') this.#slots.release();
    if (before === 'parked') this.#slots.onChange();
  }
}

const isMoreUrgent = (one: Urgency, other: Urgency): boolean =>
  one.priority === other.priority ? one.addedAt < other.addedAt : one.priority < other.priority;
