import { LRUCache } from 'lru-cache';

/** A schema that was last used so many others ago counts as new. */
const maxSchemas = 1000;

/** Which schemas a pool's provider has compiled, as far as is known here; a schema is a digest that names its model. */
export class CompilingCalls {
  readonly #used = new LRUCache<string, true>({ max: maxSchemas });

  /** Whether a call with this schema waits until it is compiled. */
  isNew(schema: string | undefined): boolean {
    return schema !== undefined && !this.#used.has(schema);
  }

  /** A call with this schema was answered. */
  recordUse(schema: string | undefined): void {
    if (schema !== undefined) this.#used.set(schema, true);
  }
}
