import type { Request } from 'express';
import { Failure } from '../../shared/failures.js';
import type { GiveWay, HeldBytes } from '../http/json-body.js';
import { clientOf } from './rate-limit.js';

interface Address {
  bytes: number;
  /** Called to make a body give way, the oldest first. */
  readonly bodies: Set<() => void>;
}

/**
 * Counts the bodies that come without credentials while they arrive. Where there is no room for more, the oldest body
 * of the address that holds most gives way: to keep others out, an address would have to hold less than they do.
 */
export class StrangersBytes {
  readonly #maxBytes: number;
  readonly #addresses = new Map<string, Address>();
  #total = 0;

  constructor({ maxBytes }: { maxBytes: number }) {
    this.#maxBytes = maxBytes;
  }

  /** Begins to count for a request; `refuse` ends it with `overloaded` if its body has to give way. */
  open({ ip }: Pick<Request, 'ip'>, refuse: GiveWay): HeldBytes {
    const name = clientOf(ip);
    const address = this.#addresses.get(name) ?? { bytes: 0, bodies: new Set() };
    this.#addresses.set(name, address);
    let held = 0;
    const count = (bytes: number) => {
      address.bytes += bytes - held;
      this.#total += bytes - held;
      held = bytes;
    };
    const release = () => {
      count(0);
      address.bodies.delete(giveWay);
      if (address.bodies.size === 0 && this.#addresses.get(name) === address) this.#addresses.delete(name);
    };
    const giveWay = () => {
      release();
      refuse(new Failure('overloaded', noRoom));
    };
    address.bodies.add(giveWay);
    return {
      resize: (bytes) => {
        if (!address.bodies.has(giveWay)) throw new Failure('overloaded', noRoom);
        count(bytes);
        while (this.#total > this.#maxBytes) this.#makeRoom();
      },
      release,
    };
  }

  #makeRoom(): void {
    const [first, ...others] = this.#addresses.values();
    const heaviest = others.reduce((most, each) => (most && most.bytes >= each.bytes ? most : each), first);
    const [oldest] = heaviest?.bodies ?? [];
    oldest?.();
  }
}

const noRoom = {
  detail: 'Too many sign-ins arrive at once, and others have waited for less long.',
  retryAfterMs: 1000,
};
