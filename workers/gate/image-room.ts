import { Tally } from '../../shared/runtime/semaphore.js';
import { type GatedCall, userOf } from './gated-call.js';

/** A call that begins has its images as bytes, as base64, in its body and on their way: 5 MiB take about 40 MB. */
const copies = 8;
/** Less than this always fits, and is not counted. */
const smallBytes = 1024 * 1024;

type Call = Pick<GatedCall, 'user' | 'besideBytes'>;

/**
 * Room for the images of all calls of this process until their provider has them. A user has half of it at most, for
 * which a call with more counts, so that no user alone keeps another's call waiting.
 */
export class ImageRoom {
  readonly #maxBytes: number;
  readonly #held = new Tally();
  readonly #onRelease: (() => void)[] = [];

  constructor({ maxBytes }: { maxBytes: number }) {
    this.#maxBytes = maxBytes;
  }

  fits(call: Call): boolean {
    const bytes = this.#bytesOf(call);
    const isFree = this.#held.total + bytes <= this.#maxBytes;
    return bytes === 0 || (isFree && this.#held.of(userOf(call)) + bytes <= this.#maxBytes / 2);
  }

  /** Takes room for the call's images, and returns what gives it back. */
  add(call: Call): () => void {
    let held = this.#bytesOf(call);
    this.#held.add(userOf(call), held);
    return () => {
      if (held === 0) return;
      this.#held.add(userOf(call), -held);
      held = 0;
      for (const wake of this.#onRelease) wake();
    };
  }

  /** Calls this whenever there is more room. */
  onRelease(wake: () => void): void {
    this.#onRelease.push(wake);
  }

  #bytesOf({ besideBytes }: Call): number {
    const bytes = copies * besideBytes;
    return bytes < smallBytes ? 0 : Math.min(bytes, this.#maxBytes / 2);
  }
}
