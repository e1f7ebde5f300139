import { LRUCache } from 'lru-cache';
import { Tally } from '../../shared/runtime/tally.js';
import type { GatedCall } from './gated-call.js';

/** A schema that was last used so many others ago counts as new. */
const maxSchemas = 1000;
/** One user's part of the places is one in so many, but at least one. */
const usersToFill = 4;

interface CompilingCallsOptions {
  /** The slots of the pool. */
  concurrency: () => number;
  /** Whether one more job of this user may be here without a slot. */
  hasRoom: (user: string | undefined) => boolean;
}

/**
 * Which schemas a pool's provider has compiled, as far as is known here; a schema is a digest that names its model. A
 * call that waits for a new one may take longer than others, without its slot: as many at once as the pool has slots,
 * because anyone can send a new schema each time.
 */
export class CompilingCalls {
  readonly #options: CompilingCallsOptions;
  readonly #used = new LRUCache<string, true>({ max: maxSchemas });
  /** The places that are taken, by user. */
  readonly #taken = new Tally();

  constructor(options: CompilingCallsOptions) {
    this.#options = options;
  }

  /** Whether a call with this schema waits until it is compiled. */
  isNew(schema: string | undefined): boolean {
    return schema !== undefined && !this.#used.has(schema);
  }

  /** A call with this schema was answered. */
  recordUse(schema: string | undefined): void {
    if (schema !== undefined) this.#used.set(schema, true);
  }

  /** Gives the call a place beside the slots, and its slot to another job. Undefined when no place is left. */
  outlast({ user = '', slot }: Pick<GatedCall, 'user' | 'slot'>): Disposable | undefined {
    const { concurrency, hasRoom } = this.#options;
    const size = concurrency();
    const maxOwn = Math.max(1, Math.floor(size / usersToFill));
    if (this.#taken.total >= size || this.#taken.of(user) >= maxOwn || !hasRoom(user)) return undefined;
    this.#taken.add(user, 1);
    slot.park();
    return { [Symbol.dispose]: () => this.#taken.add(user, -1) };
  }
}
