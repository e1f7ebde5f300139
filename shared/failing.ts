/** How the calls of a worker's last minute went. */
interface CallShares {
  readonly count: number;
  readonly errorRate: number;
  readonly rateLimitRate: number;
}

/** With fewer calls one that fails by chance would speak for the provider. */
const minCalls = 3;

/** Whether a provider is failing: it failed, or limited, at least half of the calls of the last minute, of three or more. */
export function isFailing(workers: readonly CallShares[]): boolean {
  const count = workers.reduce((sum, calls) => sum + calls.count, 0);
  const bad = workers.reduce(
    (sum, { count, errorRate, rateLimitRate }) => sum + count * (errorRate + rateLimitRate),
    0,
  );
  return count >= minCalls && bad >= count / 2;
}
