/** The gates of models by their whole names. A gate is closed until it is opened, and stays open until a reset. */
export class Gates {
  readonly #gates = new Map<string, PromiseWithResolvers<void>>();
  readonly #open = new Set<string>();

  /** Waits until the gate of the call's model is open, or until the call is closed. */
  async pass({ model = '', closed }: { model: string | undefined; closed: Promise<void> }): Promise<void> {
    await Promise.race([this.#of(model).promise, closed]);
  }

  /** Opens the gate of a model, also before the first call of it. */
  open(model: string): void {
    this.#open.add(model);
    this.#of(model).resolve();
  }

  /** Closes all gates. Calls that wait go on waiting. */
  reset(): void {
    for (const model of this.#open) this.#gates.delete(model);
    this.#open.clear();
  }

  #of(model: string): PromiseWithResolvers<void> {
    const gate = this.#gates.get(model) ?? Promise.withResolvers<void>();
    this.#gates.set(model, gate);
    return gate;
  }
}
