import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/semaphore.js';
import type { HeldBytes } from '../http/json-body.js';
import type { AuthenticatedRequest } from './caller.js';
import { clientOf } from './login-limiter.js';

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

interface Body {
  readonly address: string;
  end(failure: Failure): void;
}

/**
 * Makes what counts the bodies that come without credentials, each of which has `maxMs` milliseconds to arrive; else it
 * is refused with 408. Where there is no room for more, the oldest body of the address that holds most gives way, with
 * `overloaded`: to keep others out, an address would have to hold less than they do.
 */
export function createStrangersBytes({ maxBytes, maxMs }: { maxBytes: number; maxMs: number }) {
  const heldBy = new Tally();
  /** The bodies that are held, the oldest first. */
  const bodies = new Set<Body>();
  const heavier = (one: Body, other: Body) =>
    heldBy.of(other.address) > heldBy.of(one.address) ? other : one;
  return ({ ip }: Pick<Request, 'ip'>): HeldBytes => {
    const address = clientOf(ip);
    const refusal = new AbortController();
    let held = 0;
    const count = (bytes: number) => {
      heldBy.add(address, bytes - held);
      held = bytes;
    };
    const end = (failure: Failure) => {
      clearTimeout(late);
      count(0);
      bodies.delete(body);
      refusal.abort(failure);
    };
    const late = setTimeout(() => end(new Failure('invalid_request', tooLate)), maxMs);
    const body = { address, end };
    bodies.add(body);
    return {
      refusal: refusal.signal,
      resize: (bytes) => {
        refusal.signal.throwIfAborted();
        count(bytes);
        while (heldBy.total > maxBytes) [...bodies].reduce(heavier).end(new Failure('overloaded', noRoom));
      },
      release: () => end(new Failure('invalid_json')),
    };
  };
}

const noRoom = {
  detail: 'Too many sign-ins arrive at once; the slowest are refused.',
  retryAfterMs: 1000,
};
const tooLate = {
  status: 408,
  detail: 'The body took too long to arrive.',
  headers: { Connection: 'close' },
};
