import type { ServerResponse } from 'node:http';

interface Gate {
  isOpen: boolean;
  readonly waiting: Set<() => void>;
}

/** The gates of models by their whole names. A gate is closed until it is opened, and stays open until a reset. */
export class Gates {
  readonly #gates = new Map<string, Gate>();

  /** Waits until the model's gate is open, or until the connection closes. */
  async pass(model: string, response: ServerResponse): Promise<void> {
    const { isOpen, waiting } = this.#of(model);
    if (isOpen || response.destroyed) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        response.off('close', wake);
        resolve();
      };
      waiting.add(wake);
      response.on('close', wake);
    });
  }

  /** Opens the gate of a model, also before the first call of it. */
  open(model: string): void {
    const gate = this.#of(model);
    gate.isOpen = true;
    for (const wake of [...gate.waiting]) wake();
  }

  /** Opens each gate that a call has come to. */
  openAll(): void {
    for (const model of this.#gates.keys()) this.open(model);
  }

  /** Closes all gates. Calls that wait go on waiting. */
  reset(): void {
    for (const [model, { waiting }] of this.#gates) if (waiting.size === 0) this.#gates.delete(model);
  }

  #of(model: string): Gate {
    const gate = this.#gates.get(model) ?? { isOpen: false, waiting: new Set() };
    this.#gates.set(model, gate);
    return gate;
  }
}
