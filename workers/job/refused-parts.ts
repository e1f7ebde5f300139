import { LRUCache } from 'lru-cache';

/** So long a model is asked without what it has refused, in milliseconds. */
const rememberedMs = 3_600_000;
/** Pairs of a model and a user that are remembered; of the next one the first call is refused again. */
const maxPairs = 2000;
/** Parts of each: anyone can send values that no model takes. */
const maxParts = 32;

const none: ReadonlySet<string> = new Set();

/** The parts of requests that each model has refused each user, until an hour after the last of them. */
export class RefusedParts {
  readonly #parts: LRUCache<string, ReadonlySet<string>>;

  /** `clock` measures how long ago a refusal was, in milliseconds. */
  constructor(clock: { now(): number } = performance) {
    this.#parts = new LRUCache({ max: maxPairs, ttl: rememberedMs, ttlResolution: 0, perf: clock });
  }

  of(model: string, user?: string): ReadonlySet<string> {
    return this.#parts.get(pairOf(model, user)) ?? none;
  }

  /** Takes a part that was refused, once the same call was answered without it. */
  add(model: string, user: string | undefined, part: string): void {
    const others = [...this.of(model, user)].filter((other) => other !== part);
    this.#parts.set(pairOf(model, user), new Set([...others.slice(1 - maxParts), part]));
  }

  /** A call was refused that was made without these parts. */
  forget(model: string, user?: string): void {
    this.#parts.delete(pairOf(model, user));
  }
}

const pairOf = (model: string, user = ''): string => JSON.stringify([model, user]);
