import type { FleetWorker } from '../../shared/contracts/fleet-contract.ts';

/** A worker that serves, as the fleet has it. */
export const fleetWorker = (facts: Partial<FleetWorker> = {}): FleetWorker => ({
  ...{ worker: 'w', state: 'serving', concurrency: 1, inFlight: 0, meanJobMs: 0, breakers: [] },
  ...{ simulated: false, settingsVersion: 0, release: '0.5.0', host: 'h' },
  ...facts,
});
