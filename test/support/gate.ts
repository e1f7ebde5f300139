import { Gate, type GateOptions } from '../../workers/gate/gate.js';
import { type Slot, Slots } from '../../workers/gate/slots.js';
import { RefusedParts } from '../../workers/job/refused-parts.js';
import { RetryBudget } from '../../workers/job/retry-budget.js';

interface OpenGate {
  gate: Gate;
  refused: RefusedParts;
  budget: RetryBudget;
  close(): void;
}

/** The gate of a pool, without subscribers to its changes, and the notes about the pool's models. */
export function openGate({
  timeoutMs = 10_000,
  resetMs = 60_000,
  concurrency = 1,
  hasRoom = () => true,
  imageRoom,
}: { timeoutMs?: number; resetMs?: number; concurrency?: number } & Partial<
  Pick<GateOptions, 'imageRoom' | 'hasRoom'>
> = {}): OpenGate {
  const gate = new Gate({
    times: () => ({ timeoutMs, resetMs }),
    concurrency: () => concurrency,
    hasRoom,
    namedModels: () => [],
    imageRoom,
    onChange: () => {},
    publishLimit: () => {},
  });
  return { gate, refused: new RefusedParts(), budget: new RetryBudget(), close: () => gate.dispose() };
}

/** The slot of a single job. */
export const openSlot = (): Slot =>
  new Slots({ size: () => 1, onChange: () => {} }).open({ priority: 0, addedAt: 0 });
