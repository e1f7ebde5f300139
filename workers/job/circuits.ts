import type { ModelBreaker } from '../../shared/protocol/messages.js';
import type { BreakerState } from './breaker.js';
import { Circuit, type CircuitOptions } from './circuit.js';

interface CircuitsOptions extends Omit<CircuitOptions, 'onChange' | 'publishLimit'> {
  onChange: (model: string, breaker?: BreakerState) => void;
  publishLimit: (model: string, holdMs: number) => void;
}

/** Callers choose the names of models: no more than these have a circuit of their own. */
const maxModels = 32;
/** What the others share; no name of a model is empty. */
const rest = '';

/** The circuits of a pool's models. Those that are well and unused make room for others. */
export class Circuits {
  readonly #options: CircuitsOptions;
  /** Those used last are last. */
  readonly #circuits = new Map<string, Circuit>();
  #isClosing = false;

  constructor(options: CircuitsOptions) {
    this.#options = options;
  }

  /** The circuit of this model. */
  of(model: string): Circuit {
    const name = this.#circuits.has(model) || this.#makeRoom() ? model : rest;
    const circuit = this.#circuits.get(name) ?? this.#open(name);
    this.#circuits.delete(name);
    this.#circuits.set(name, circuit);
    return circuit;
  }

  /** How long no call of any model that is limited may begin, in milliseconds. */
  get maxCooldownMs(): number {
    return Math.max(0, ...this.#all().map(({ cooldown }) => cooldown.leftMs));
  }

  /** The worst state that a breaker is in. */
  get worstState(): BreakerState {
    const states = this.#all().map(({ breaker }) => breaker.state);
    return (['open', 'half-open'] as const).find((state) => states.includes(state)) ?? 'closed';
  }

  /** The models that not every call is made of. */
  describe(): ModelBreaker[] {
    return [...this.#circuits].flatMap(([model, { breaker, cooldown }]): ModelBreaker[] => {
      if (model === rest) return [];
      const nextProbeMs = Math.ceil(breaker.nextProbeMs || cooldown.leftMs);
      if (breaker.state !== 'closed') return [{ model, state: breaker.state, nextProbeMs }];
      return nextProbeMs > 0 ? [{ model, state: 'limited', nextProbeMs }] : [];
    });
  }

  /** Gives back the jobs that wait for their models. */
  close(): void {
    this.#isClosing = true;
    for (const circuit of this.#all()) circuit.close();
  }

  dispose(): void {
    for (const circuit of this.#all()) circuit.dispose();
  }

  #all(): Circuit[] {
    return [...this.#circuits.values()];
  }

  #makeRoom(): boolean {
    const own = [...this.#circuits.keys()].filter((model) => model !== rest);
    if (own.length < maxModels) return true;
    const idle = own.find((model) => this.#circuits.get(model)?.isIdle);
    if (idle === undefined) return false;
    this.#circuits.get(idle)?.dispose();
    return this.#circuits.delete(idle);
  }

  #open(model: string): Circuit {
    const { onChange, publishLimit, ...options } = this.#options;
    const circuit = new Circuit({
      ...options,
      onChange: (breaker) => onChange(model, breaker),
      publishLimit: (holdMs) => publishLimit(model, holdMs),
    });
    if (this.#isClosing) circuit.close();
    return circuit;
  }
}
