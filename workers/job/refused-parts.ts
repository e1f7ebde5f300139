import { LRUCache } from 'lru-cache';

/** How long a model is asked without a part that it has refused, in milliseconds. */
const rememberedMs = 3_600_000;
/** Anyone can send values that no model takes; what was left out longest ago is forgotten first. */
const maxParts = 10_000;

/** The parts of requests that the models of a pool have refused, each for the user who met it. */
export class RefusedParts {
  readonly #parts: LRUCache<string, true>;

  /** `clock` measures how long ago a refusal was, in milliseconds. */
  constructor(clock: { now(): number } = performance) {
    this.#parts = new LRUCache({ max: maxParts, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  has(owner: PartOwner, part: string): boolean {
    return this.#parts.get(keyOf(owner, part)) === true;
  }

  /** Takes parts that were refused, once the same call was answered without them. */
  add(owner: PartOwner, parts: readonly string[]): void {
    for (const part of parts) this.#parts.set(keyOf(owner, part), true);
  }

  /** Takes parts that a call was made without, once that has shown to be wrong. */
  forget(owner: PartOwner, parts: readonly string[]): void {
    for (const part of parts) this.#parts.delete(keyOf(owner, part));
  }
}

interface PartOwner {
  readonly model: string;
  readonly user: string | undefined;
}

const keyOf = ({ model, user = '' }: PartOwner, part: string): string => JSON.stringify([model, user, part]);
