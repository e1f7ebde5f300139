import type { QueryConfig } from 'pg';

/** A bound for what each connection remembers; there are fewer statements than that. */
const maxNames = 100;

/**
 * Gives statements with values a name, under which each connection of a pool has the server parse and plan them once.
 * Their texts must contain no values: each text gets a name of its own.
 */
export class NamedStatements {
  readonly #names = new Map<string, string>();
  #given = 0;

  of(text: string, values: readonly unknown[] = []): QueryConfig {
    if (values.length === 0) return { text };
    const name = this.#names.get(text) ?? this.#nameFor(text);
    return { text, values: [...values], ...(name !== undefined && { name }) };
  }

  /** Plans the statement anew under another name: the server refuses a plan whose columns a migration changed. */
  rename(text: string): void {
    this.#names.delete(text);
  }

  #nameFor(text: string): string | undefined {
    if (this.#names.size === maxNames) return undefined;
    this.#given += 1;
    const name = `quillgate-${this.#given}`;
    this.#names.set(text, name);
    return name;
  }
}
