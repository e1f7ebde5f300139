/** Keeps retries to a share of the traffic, so that a failing provider is not asked twice as often as a healthy one. */
export interface RetryBudget {
  /** To be called once for every first attempt. */
  earn(): void;
  /** Takes one retry out of the budget; false when there is none. */
  spend(): boolean;
}

const attemptsPerRetry = 10;
const maxSaved = 10 * attemptsPerRetry;

/** One retry for every ten first attempts, and at most ten saved up (which is also what a new worker starts with). */
export function createRetryBudget(): RetryBudget {
  let earned = maxSaved;
  return {
    earn: () => {
      earned = Math.min(maxSaved, earned + 1);
    },
    spend: () => {
      if (earned < attemptsPerRetry) return false;
      earned -= attemptsPerRetry;
      return true;
    },
  };
}
