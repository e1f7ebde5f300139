import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/tally.js';
import type { HeldBytes } from '../http/json-body.js';
import type { AuthenticatedRequest } from './caller.js';

interface ByteLimits {
  /** Bytes that one user may hold; a single request may be larger. Absent means any number. */
  perUser?: number;
  /** Bytes that all users may hold together; a single request may be larger. Absent means any number. */
  inAll?: number;
}

/** When a request in flight ends is unknown; most end soon. */
const retryAfterMs = 1000;

/** Counts the bytes of requests that this process holds, by user and in all. */
export class BytesInFlight {
  readonly #limits: Required<ByteLimits>;
  readonly #held = new Tally();

  constructor({ perUser = Number.POSITIVE_INFINITY, inAll = Number.POSITIVE_INFINITY }: ByteLimits = {}) {
    this.#limits = { perUser, inAll };
  }

  /** Begins to count for a request of this user. */
  open({ user: { id: user } }: Pick<AuthenticatedRequest, 'user'>): HeldBytes {
    let held = 0;
    let isReleased = false;
    const count = (bytes: number) => {
      this.#held.add(user, bytes - held);
      held = bytes;
    };
    return {
      user,
      resize: (bytes) => {
        // The client has left, but a decoder may still go on with what it had sent.
        if (isReleased) throw new Failure('invalid_json');
        if (bytes > held) this.#refuseIfOver(user, { held, bytes: bytes - held });
        count(bytes);
      },
      release: () => {
        isReleased = true;
        count(0);
      },
    };
  }

  /** Counts the bytes of work without a request, until the returned function is called; refuses nothing. */
  hold(user: string, bytes: number): () => void {
    this.#held.add(user, bytes);
    return () => this.#held.add(user, -bytes);
  }

  /** A request that alone is larger than a limit may go on: the size of a body has its own limit. */
  #refuseIfOver(user: string, { held, bytes }: { held: number; bytes: number }): void {
    const ofUser = this.#held.of(user);
    if (ofUser > held && ofUser + bytes > this.#limits.perUser)
      throw new Failure('rate_limited', overLimit('The requests of this user', this.#limits.perUser));
    if (this.#held.total > held && this.#held.total + bytes > this.#limits.inAll)
      throw new Failure('overloaded', overLimit('All requests', this.#limits.inAll));
  }
}

const overLimit = (requests: string, maxBytes: number) => ({
  detail: `${requests} in flight would hold more than ${maxBytes} bytes.`,
  retryAfterMs,
});
