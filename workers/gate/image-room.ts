import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/tally.js';
import type { AdmittedCall, GatedCall } from './gated-call.js';
import { type Waiter, WaitingJobs } from './waiting-jobs.js';

/** As a call begins, it has its images as bytes, as base64, in its body and on their way: 5 MiB take about 40 MB. */
const copies = 8;

/**
 * Room for the images of all calls of this process. A call that finds none waits, its slot parked; the user whose calls
 * take least comes first, and nothing overtakes what does not fit yet.
 */
export class ImageRoom {
  readonly #maxBytes: number;
  readonly #held = new Tally();
  readonly #waiting = new WaitingJobs();

  constructor({ maxBytes }: { maxBytes: number }) {
    this.#maxBytes = maxBytes;
  }

  /** Makes the call once there is room for its images. Throws `timeout` at its deadline. */
  async run<T>(
    call: GatedCall,
    admitted: Pick<AdmittedCall, 'startedAt' | 'park'>,
    next: () => Promise<T>,
  ): Promise<T> {
    const bytes = bytesOf(call);
    if (bytes === 0) return next();
    admitted.startedAt = undefined;
    const begun = this.#waiting.wait(call, call.leftMs(), () => new Failure('timeout'));
    // It may fit where those before it do not, as the call of a user who has less.
    this.#wake();
    if (this.#waiting.all.some((waiter) => waiter.call === call)) admitted.park();
    await begun.finally(() => this.#wake());
    try {
      await call.slot.take();
      admitted.startedAt = performance.now();
      return await next();
    } finally {
      this.#held.add(userOf(call), -bytes);
      this.#wake();
    }
  }

  /** A call that alone is larger than the room may go on. */
  #fits(bytes: number): boolean {
    return this.#held.total === 0 || this.#held.total + bytes <= this.#maxBytes;
  }

  #wake(): void {
    const heldBy = ({ call }: Waiter) => this.#held.of(userOf(call));
    for (;;) {
      const [next] = this.#waiting.all.sort((one, other) => heldBy(one) - heldBy(other));
      if (next === undefined || !this.#fits(bytesOf(next.call))) return;
      this.#held.add(userOf(next.call), bytesOf(next.call));
      next.begin();
    }
  }
}

const userOf = ({ user = '' }: GatedCall): string => user;
const bytesOf = ({ besideBytes }: GatedCall): number => copies * besideBytes;
