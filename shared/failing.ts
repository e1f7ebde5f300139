import type { FleetCalls } from './fleet-contract.js';

/** With fewer calls, one that fails by chance would count for the provider. */
const minCalls = 3;

/** Whether a provider is failing: of three or more calls in the last minute at least half failed or were limited. */
export function isFailing(workers: readonly FleetCalls[]): boolean {
  const count = workers.reduce((sum, calls) => sum + calls.count, 0);
  const bad = workers.reduce(
    (sum, { count, errorRate, rateLimitRate }) => sum + count * (errorRate + rateLimitRate),
    0,
  );
  return count >= minCalls && bad >= count / 2;
}
