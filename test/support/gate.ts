import { Gate, type GateOptions } from '../../workers/gate/gate.js';
import { RefusedParts } from '../../workers/job/refused-parts.js';
import { RetryBudget } from '../../workers/job/retry.js';

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
  imageRoom,
  namedModels = () => [],
}: { timeoutMs?: number; resetMs?: number; concurrency?: number } & Partial<
  Pick<GateOptions, 'imageRoom' | 'namedModels'>
> = {}): OpenGate {
  const gate = new Gate({
    times: () => ({ timeoutMs, resetMs }),
    concurrency: () => concurrency,
    namedModels,
    imageRoom,
    onChange: () => {},
    onParked: () => {},
    publishLimit: () => {},
  });
  return { gate, refused: new RefusedParts(), budget: new RetryBudget(), close: () => gate.dispose() };
}
