import type { ModelBreaker } from '../../shared/protocol/messages.js';
import { Circuit, type CircuitOptions } from './circuit.js';
import type { Limit } from './cooldown.js';
import type { GateChange } from './gated-call.js';
import { LongCalls } from './long-calls.js';

export interface CircuitsOptions
  extends Omit<CircuitOptions, 'model' | 'longCalls' | 'onChange' | 'publishLimit'> {
  /** The slots of the pool. */
  concurrency: () => number;
  onChange: (change: GateChange) => void;
  publishLimit: (limit: Limit & { model: string }) => void;
  /** The model by default, and what callers may name besides, with patterns among them. */
  namedModels: () => readonly string[];
}

/** Up to this many models that operators name always have their own circuit: the default one and 64 more. */
const maxNamed = 65;
/** Up to this many other models have their own circuit: callers choose the names. */
const maxModels = 32;
/** The name of the circuit that the others share, which never forbids a call; no model's name is empty. */
const shared = '';

/** The circuits of a pool's models. An idle circuit makes room for another model's, unless operators name its model. */
export class Circuits {
  /** By model, in order of last use. */
  readonly #circuits = new Map<string, Circuit>();
  readonly #longCalls: LongCalls;
  #isClosing = false;
  #forced: 'closed' | undefined;

  constructor(private readonly options: CircuitsOptions) {
    this.#longCalls = new LongCalls(options);
  }

  of(model: string): Circuit {
    const name = this.#circuits.has(model) || this.#makeRoomFor(model) ? model : shared;
    const circuit = this.#circuits.get(name) ?? this.#open(name);
    this.#circuits.delete(name);
    this.#circuits.set(name, circuit);
    return circuit;
  }

  /** The rest of the longest cooldown, in milliseconds. */
  get maxCooldownMs(): number {
    return Math.max(0, ...[...this.#circuits.values()].map(({ cooldown }) => cooldown.maxLeftMs));
  }

  /** The models that are not called freely. */
  describe(): ModelBreaker[] {
    return [...this.#circuits].flatMap(([model, { breakers, cooldown }]): ModelBreaker[] => {
      if (model === shared) return [];
      const limited = { model, state: 'limited', reason: 'provider_rate_limited' } as const;
      const limits = cooldown
        .describe()
        .map(({ holdMs, user }) => ({ ...limited, nextProbeMs: holdMs, user }));
      return [...breakers.describe().map((breaker) => ({ model, ...breaker })), ...limits];
    });
  }

  /** Holds the breakers of all models closed, also of those to come, until it is called without a state. */
  force(state: 'closed' | undefined): void {
    this.#forced = state;
    for (const [model, circuit] of this.#circuits) if (model !== shared) circuit.breakers.force(state);
  }

  /** Has the jobs that wait for their models go back to their queue. */
  close(): void {
    this.#isClosing = true;
    this.#longCalls.close();
    for (const circuit of this.#circuits.values()) circuit.close();
  }

  /** Ends their timers; to be called once no job is left. */
  dispose(): void {
    for (const circuit of this.#circuits.values()) circuit.dispose();
  }

  #makeRoomFor(model: string): boolean {
    const named = this.#namedModels();
    if (named.has(model)) return true;
    const others = [...this.#circuits.keys()].filter((other) => other !== shared && !named.has(other));
    if (others.length < maxModels) return true;
    const idle = others.find((other) => this.#circuits.get(other)?.isIdle);
    if (idle === undefined) return false;
    this.#circuits.get(idle)?.dispose();
    return this.#circuits.delete(idle);
  }

  #namedModels(): ReadonlySet<string> {
    const literal = this.options.namedModels().filter((name) => !name.includes('*'));
    return new Set(literal.slice(0, maxNamed));
  }

  #open(model: string): Circuit {
    const { onChange, publishLimit, namedModels: _, ...options } = this.options;
    const circuit = new Circuit({
      ...options,
      model,
      longCalls: this.#longCalls,
      onChange: (change) => onChange({ ...change, model }),
      publishLimit: (limit) => publishLimit({ ...limit, model }),
    });
    // Failures and limits of one of the models that share it say nothing about the others.
    if (model === shared) circuit.dispose();
    circuit.breakers.force(model === shared ? 'closed' : this.#forced);
    if (this.#isClosing) circuit.close();
    return circuit;
  }
}
