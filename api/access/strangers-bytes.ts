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
