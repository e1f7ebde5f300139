import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/tally.js';
import type { HeldBytes } from '../http/json-body.js';
import { clientOf } from './rate-limit.js';

interface Body {
  readonly address: string;
  end(failure: Failure): void;
}

/**
 * Counts the bodies that come without credentials, each of which has `maxMs` milliseconds to arrive. Where there is no
 * room for more, the oldest body of the address that holds most gives way: to keep others out, an address would have to
 * hold less than they do.
 */
export class StrangersBytes {
  readonly #limits: { maxBytes: number; maxMs: number };
  readonly #held = new Tally();
  /** The oldest first. */
  readonly #bodies = new Set<Body>();

  constructor(limits: { maxBytes: number; maxMs: number }) {
    this.#limits = limits;
  }

  /** Begins to count for a request; its body may be refused while it arrives, with `overloaded` or 408. */
  open({ ip }: Pick<Request, 'ip'>): HeldBytes {
    const address = clientOf(ip);
    const refusal = new AbortController();
    let held = 0;
    const count = (bytes: number) => {
      this.#held.add(address, bytes - held);
      held = bytes;
    };
    const end = (failure: Failure) => {
      clearTimeout(late);
      count(0);
      this.#bodies.delete(body);
      refusal.abort(failure);
    };
    const late = setTimeout(() => end(new Failure('invalid_request', tooLate)), this.#limits.maxMs);
    const body = { address, end };
    this.#bodies.add(body);
    return {
      refusal: refusal.signal,
      resize: (bytes) => {
        refusal.signal.throwIfAborted();
        count(bytes);
        while (this.#held.total > this.#limits.maxBytes) this.#makeRoom();
      },
      release: () => end(new Failure('invalid_json')),
    };
  }

  #makeRoom(): void {
    const heavier = (one: Body, other: Body) =>
      this.#held.of(other.address) > this.#held.of(one.address) ? other : one;
    [...this.#bodies].reduce(heavier).end(new Failure('overloaded', noRoom));
  }
}

const noRoom = {
  detail: 'Too many sign-ins arrive at once, and others have waited for less long.',
  retryAfterMs: 1000,
};
const tooLate = {
  status: 408,
  detail: 'The body took too long to arrive.',
  headers: { Connection: 'close' },
};
