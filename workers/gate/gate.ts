import { Failure } from '../../shared/failures.js';
import type { Breaker } from './breaker.js';
import { isUnreachable } from './call-samples.js';
import type { Circuits } from './circuits.js';
import { NotBegun } from './ends.js';
import type { AdmittedCall, GatedCall, Pass } from './gated-call.js';
import type { ImageRoom } from './image-room.js';

export interface GateOptions {
  circuits: Pick<Circuits, 'of'>;
  /** The breaker of what concerns the account, and so every model. */
  account: Pick<Breaker, 'state' | 'isProbing' | 'run'>;
  /** Shared by all pools of this process; absent where there are no stored images. */
  imageRoom?: Pick<ImageRoom, 'run'> | undefined;
  /** Whether the job may go back to its queue when the provider cannot be reached from here. */
  mayHandBack: (jobId: string) => boolean;
}

/**
 * Decides when a call of a pool may begin. In order:
 * 1. it waits for its model, without a slot: for the breaker, for the end of a cooldown, and for its turn (`Circuit`);
 * 2. it is refused while the breaker of the account is open, and its job goes back to the queue, or to its fallback;
 * 3. it waits for room for its images;
 * 4. it is made, and all of these learn from its end. A job whose first call never left goes back to the queue once.
 */
export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Makes the call as soon as it may begin. Throws `NotBegun`, or why it may not begin in time. */
  async run<C extends GatedCall, T>(
    call: C,
    next: (call: C & { readonly pass: Pass }) => Promise<T>,
  ): Promise<T> {
    const { circuits, mayHandBack } = this.#options;
    try {
      return await circuits
        .of(call.model)
        .run(call, (admitted) => this.#enter(call, admitted, () => next({ ...call, pass: admitted })));
    } catch (error) {
      const mayGoBack = call.kind === 'first' && !call.hasFallback && !call.progress.hasBegun;
      if (mayGoBack && isUnreachable(error) && mayHandBack(call.jobId)) throw new NotBegun();
      throw error;
    }
  }

  /** How long no call like this may begin, in milliseconds. */
  heldMs({ model }: Pick<GatedCall, 'model'>): number {
    return this.#options.circuits.of(model).cooldown.leftMs;
  }

  async #enter<T>(call: GatedCall, admitted: AdmittedCall, make: () => Promise<T>): Promise<T> {
    const { account, imageRoom } = this.#options;
    const { state, isProbing } = account;
    const isRefused = state === 'open' || (state === 'half-open' && isProbing);
    if (isRefused && call.kind === 'first')
      throw call.hasFallback ? new Failure('provider_unavailable') : new NotBegun();
    return account.run(admitted, () => (imageRoom ? imageRoom.run(call, admitted, make) : make()));
  }
}
