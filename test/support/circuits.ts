import { Breaker } from '../../workers/job/breaker.js';
import { AccountSamples } from '../../workers/job/call-samples.js';
import { Circuits } from '../../workers/job/circuits.js';
import { type Slot, Slots } from '../../workers/job/slots.js';

/** The circuits of a pool, without subscribers to their changes. */
export function openCircuits({ timeoutMs = 10_000, resetMs = 60_000 } = {}): {
  account: Breaker;
  circuits: Circuits;
  close(): void;
} {
  const times = () => ({ timeoutMs, resetMs });
  const account = new Breaker({ times, samples: new AccountSamples(), onChange: () => {} });
  const circuits = new Circuits({
    times,
    hasRoom: () => true,
    namedModels: () => [],
    onChange: () => {},
    publishLimit: () => {},
  });
  return {
    account,
    circuits,
    close: () => {
      circuits.dispose();
      account.dispose();
    },
  };
}

/** The slot of a single job. */
export const openSlot = (): Slot =>
  new Slots({ size: () => 1, onChange: () => {} }).open({ priority: 0, addedAt: 0 });
