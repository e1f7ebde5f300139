import { LRUCache } from 'lru-cache';
import { Failure } from '../../shared/failures.js';
import type { ModelBreaker } from '../../shared/protocol/messages.js';
import { callErrorOf } from '../providers/error-classification.js';
import type { Breaker, BreakerState } from './breaker.js';
import { Breakers } from './breakers.js';
import { AccountSamples } from './call-samples.js';
import { Circuits, type CircuitsOptions } from './circuits.js';
import type { Limit } from './cooldown.js';
import { NotBegun } from './ends.js';
import type { AdmittedCall, GatedCall, Pass } from './gated-call.js';
import type { ImageRoom } from './image-room.js';

export interface GateOptions extends CircuitsOptions {
  /** Shared by all pools of this process; absent where there are no stored images. */
  imageRoom?: Pick<ImageRoom, 'run'> | undefined;
}

/** Ids of jobs that are remembered: a job that comes back does so soon. */
const maxHandedBack = 1000;

/**
 * Decides when a call of a pool may begin. In order:
 * 1. it waits for its model, without a slot: for the breaker, for the end of a cooldown, and for its turn (`Circuit`);
 * 2. it is refused while a breaker of the account is open for its user, and its job goes back to the queue (after a
 *    pause, if for its user alone), or to its fallback;
 * 3. it waits for room for its images;
 * 4. it is made, and all of these learn from its end. A job whose first call never left goes back to the queue once.
 */
export class Gate {
  readonly #account: Breakers;
  readonly #circuits: Circuits;
  readonly #imageRoom: GateOptions['imageRoom'];
  readonly #handedBack = new LRUCache<string, true>({ max: maxHandedBack });

  constructor({ imageRoom, ...options }: GateOptions) {
    this.#imageRoom = imageRoom;
    this.#account = new Breakers({
      times: options.times,
      samples: new AccountSamples(),
      onChange: (state, user) => options.onChange({ state, user }),
    });
    this.#circuits = new Circuits(options);
  }

  /** Makes the call as soon as it may begin. Throws `NotBegun`, or why it may not begin in time. */
  async run<C extends GatedCall, T>(
    call: C,
    next: (call: C & { readonly pass: Pass }) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#circuits
        .of(call.model)
        .run(call, (admitted) => this.#enter(call, admitted, () => next({ ...call, pass: admitted })));
    } catch (error) {
      if (callErrorOf(error)?.isUnreachable && this.#mayHandBack(call)) throw new NotBegun();
      throw error;
    }
  }

  /** How long no call like this may begin, in milliseconds. */
  heldMs({ model, user }: Pick<GatedCall, 'model' | 'user'>): number {
    return this.#circuits.of(model).cooldown.leftMs(user);
  }

  /** Holds the calls of a model for at least this long: another pool of the provider has met a 429. */
  hold(limit: Limit & { model: string }): void {
    this.#circuits.of(limit.model).cooldown.extend(limit);
  }

  /** The account's breaker of all users. */
  get account(): Pick<Breaker, 'state' | 'isProbing'> {
    return this.#account.all;
  }

  /** The rest of the longest cooldown, in milliseconds. */
  get maxHeldMs(): number {
    return this.#circuits.maxCooldownMs;
  }

  get worstState(): BreakerState {
    const states = this.describe().map(({ state }) => state);
    return (['open', 'half-open'] as const).find((state) => states.includes(state)) ?? 'closed';
  }

  /** The account (without a model) if it refuses calls, and the models that are not called freely. */
  describe(): ModelBreaker[] {
    const account = this.#account.describe().map((breaker) => ({ model: null, ...breaker }));
    return [...account, ...this.#circuits.describe()];
  }

  /** Holds all breakers closed, or that of the account open, which stops all models; ends that without a state. */
  force(state: 'open' | 'closed' | undefined): void {
    this.#account.force(state);
    this.#circuits.force(state === 'closed' ? 'closed' : undefined);
  }

  /** Has the jobs that wait here go back to their queue. */
  close(): void {
    this.#circuits.close();
  }

  /** Ends its timers; to be called once no job is left. */
  dispose(): void {
    this.#circuits.dispose();
    this.#account.dispose();
  }

  async #enter<T>(call: GatedCall, admitted: AdmittedCall, make: () => Promise<T>): Promise<T> {
    const begun = this.#account.begin(call.user);
    if (begun === undefined) {
      if (call.kind === 'first' && !call.hasFallback) throw new NotBegun(this.#account.isAlone(call.user));
      throw new Failure('provider_unavailable');
    }
    admitted.isProbe ||= begun.isProbe;
    return this.#account.watch(begun, admitted, () => this.#imageRoom?.run(call, admitted, make) ?? make());
  }

  /** Whether the job of a call that never left may go back to its queue, for a worker that reaches the provider. */
  #mayHandBack({ kind, hasFallback, progress, jobId }: GatedCall): boolean {
    if (kind !== 'first' || hasFallback || progress.hasBegun || this.#handedBack.has(jobId)) return false;
    this.#handedBack.set(jobId, true);
    return true;
  }
}
