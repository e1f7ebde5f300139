/** Adds up amounts by key. A key whose amount is zero takes up no memory. */
export class Tally {
  readonly #amounts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(key: string): number {
    return this.#amounts.get(key) ?? 0;
  }

  /** Adds the amount, which may be negative. */
  add(key: string, amount: number): void {
    const sum = this.of(key) + amount;
    if (sum === 0) this.#amounts.delete(key);
    else this.#amounts.set(key, sum);
    this.#total += amount;
  }
}
