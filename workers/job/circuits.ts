import type { ModelBreaker } from '../../shared/protocol/messages.js';
import type { BreakerState } from './breaker.js';
import { Circuit, type CircuitOptions } from './circuit.js';

interface CircuitsOptions extends Omit<CircuitOptions, 'onChange' | 'publishLimit'> {
  onChange: (model: string, breaker?: BreakerState) => void;
  publishLimit: (model: string, cooldownMs: number) => void;
}

/** Models with a circuit of their own at most: callers choose the names. */
const maxModels = 32;
/** The name of the circuit that the others share; no model's name is empty. */
const shared = '';

/** The circuits of a pool's models. An idle circuit makes room for another model's. */
export class Circuits {
  readonly #options: CircuitsOptions;
  /** By model, in order of last use. */
  readonly #circuits = new Map<string, Circuit>();
  #isClosing = false;
  #forced: 'closed' | undefined;

  constructor(options: CircuitsOptions) {
    this.#options = options;
  }

  /** The circuit of this model. */
  of(model: string): Circuit {
    const name = this.#circuits.has(model) || this.#makeRoom() ? model : shared;
    const circuit = this.#circuits.get(name) ?? this.#open(name);
    this.#circuits.delete(name);
    this.#circuits.set(name, circuit);
    return circuit;
  }

  /** What is left of the longest cooldown, in milliseconds. */
  get maxCooldownMs(): number {
    return Math.max(0, ...this.#all().map(({ cooldown }) => cooldown.leftMs));
  }

  /** The worst state of their breakers. */
  get worstState(): BreakerState {
    const states = this.#all().map(({ breaker }) => breaker.state);
    return (['open', 'half-open'] as const).find((state) => states.includes(state)) ?? 'closed';
  }

  /** The models that are not called freely. */
  describe(): ModelBreaker[] {
    return [...this.#circuits].flatMap(([model, { breaker, cooldown }]): ModelBreaker[] => {
      if (model === shared) return [];
      const nextProbeMs = Math.ceil(breaker.nextProbeMs || cooldown.leftMs);
      const { state, reason } = breaker;
      if (state !== 'closed') return [{ model, state, nextProbeMs, ...(reason && { reason }) }];
      return nextProbeMs > 0
        ? [{ model, state: 'limited', nextProbeMs, reason: 'provider_rate_limited' }]
        : [];
    });
  }

  /** Holds the breakers of all models closed, also of those to come, until it is called without a state. */
  force(state: 'closed' | undefined): void {
    this.#forced = state;
    for (const circuit of this.#all()) circuit.force(state);
  }

  /** Has the jobs that wait for their models go back to their queue. */
  close(): void {
    this.#isClosing = true;
    for (const circuit of this.#all()) circuit.close();
  }

  /** Ends their timers; to be called once no job is left. */
  dispose(): void {
    for (const circuit of this.#all()) circuit.dispose();
  }

  #all(): Circuit[] {
    return [...this.#circuits.values()];
  }

  #makeRoom(): boolean {
    const own = [...this.#circuits.keys()].filter((model) => model !== shared);
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
      publishLimit: (cooldownMs) => publishLimit(model, cooldownMs),
    });
    circuit.force(this.#forced);
    if (this.#isClosing) circuit.close();
    return circuit;
  }
}
