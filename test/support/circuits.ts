import { Breaker } from '../../workers/gate/breaker.js';
import { AccountSamples } from '../../workers/gate/call-samples.js';
import { Circuits } from '../../workers/gate/circuits.js';
import { type Slot, Slots } from '../../workers/gate/slots.js';
import { ModelNotes } from '../../workers/job/model-notes.js';

/** The circuits of a pool, without subscribers to their changes, and what it notes about its models. */
export function openCircuits({ timeoutMs = 10_000, resetMs = 60_000 } = {}): {
  account: Breaker;
  circuits: Circuits;
  notes: ModelNotes;
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
    notes: new ModelNotes(),
    close: () => {
      circuits.dispose();
      account.dispose();
    },
  };
}

/** The slot of a single job. */
export const openSlot = (): Slot =>
  new Slots({ size: () => 1, onChange: () => {} }).open({ priority: 0, addedAt: 0 });
